package sync_test

import (
	"net/http"
	"path"
	"strings"
	gosync "sync"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// A run over a complete prefix looks and does nothing else: it reads the
// manifest, lists, and asks for each file's attributes. Nothing is written, and
// no content read, neither from the Hub nor from the store.
func TestSecondRunOnlyLooks(t *testing.T) {
	w := newWorld(t, nil)
	w.mustRun()
	w.hub.ResetStats()
	var mu gosync.Mutex
	var requests []*http.Request
	w.deps.StoreTransport = roundTrip(func(request *http.Request) (*http.Response, error) {
		mu.Lock()
		requests = append(requests, request)
		mu.Unlock()
		return http.DefaultTransport.RoundTrip(request)
	})
	result, err := w.run()
	if err != nil || !result.AlreadyComplete {
		t.Fatalf("already complete %v, %v", result.AlreadyComplete, err)
	}
	if stats := w.hub.Stats(); stats.FileBytes != 0 || stats.ResolveRequests != 0 || stats.CDNRequests != 0 {
		t.Errorf("asked the Hub for files: %+v", stats)
	}
	heads := make(map[string]int)
	for _, request := range requests {
		key := strings.TrimPrefix(request.URL.Path, "/"+bucket)
		switch {
		case request.Method == http.MethodHead:
			heads[strings.TrimPrefix(key, "/"+w.prefix()+"/")]++
		case request.Method == http.MethodGet && (strings.Trim(key, "/") == "" || path.Base(key) == record.ManifestName):
		default:
			t.Errorf("%s %s", request.Method, request.URL)
		}
	}
	for _, entry := range w.hub.Entries(repo, "main") {
		if heads[entry.Path] != 1 {
			t.Errorf("%s: %d requests for its attributes", entry.Path, heads[entry.Path])
		}
	}
}
