// Package hubtest starts the Hub stand-in for a test.
package hubtest

import (
	"net/http/httptest"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

// Server is a Hub that listens on two loopback ports until the test ends.
type Server struct {
	*hub.Hub
	// URL is the Hub's base URL, CDN the other origin's.
	URL, CDN string
}

// Start serves the Hub that options describe; options.CDN is filled in.
func Start(t testing.TB, options hub.Options) *Server {
	t.Helper()
	// The CDN's address is part of the Hub, so its listener comes first.
	cdn := httptest.NewUnstartedServer(nil)
	options.CDN = "http://" + cdn.Listener.Addr().String()
	served, err := hub.New(options)
	if err != nil {
		t.Fatal(err)
	}
	cdn.Config.Handler = served.CDNHandler()
	cdn.Start()
	t.Cleanup(cdn.Close)
	front := httptest.NewServer(served.Handler())
	t.Cleanup(front.Close)
	return &Server{Hub: served, URL: front.URL, CDN: options.CDN}
}
