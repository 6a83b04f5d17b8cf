// Package openaitest serves scripted replies over connections in memory, so
// that a test in a testing/synctest bubble knows the time of every byte.
package openaitest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// URL is the address that a client of Serve reaches the server by.
const URL = "http://server.test"

// Serve serves handler until the test ends. The client is for URL, and like
// openai.NewHTTP: one connection a request in flight, no redirects.
func Serve(t *testing.T, handler http.Handler) *http.Client {
	t.Helper()
	listener := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler} //nolint:gosec // no network
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	transport := &http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 1 << 16,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.dial(ctx) },
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		served.Wait()
	})
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "server.test"} }

// Step is one write of a reply, at a time after the request came.
type Step struct {
	At    time.Duration
	Write string
}

// Script is a handler that answers every request with the same reply.
type Script struct {
	// Status is 200 where it is 0; Type is text/event-stream where it is empty.
	Status   int
	Type     string
	Encoding string
	// HeaderAt is when the response header is sent.
	HeaderAt time.Duration
	Steps    []Step
	// Cut ends the connection after the last step instead of the body; Hold
	// leaves both open until the client goes.
	Cut, Hold bool
}

func (s Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	_, _ = io.Copy(io.Discard, r.Body)
	if !sleepUntil(r.Context(), start.Add(s.HeaderAt)) {
		return
	}
	kind := s.Type
	if kind == "" {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	if s.Encoding != "" {
		w.Header().Set("Content-Encoding", s.Encoding)
	}
	status := s.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	flush := http.NewResponseController(w).Flush
	if flush() != nil {
		return
	}
	for _, step := range s.Steps {
		if !sleepUntil(r.Context(), start.Add(step.At)) {
			return
		}
		if _, err := io.WriteString(w, step.Write); err != nil || flush() != nil {
			return
		}
	}
	switch {
	case s.Cut:
		panic(http.ErrAbortHandler)
	case s.Hold:
		<-r.Context().Done()
	}
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
