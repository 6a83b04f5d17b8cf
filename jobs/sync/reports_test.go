package sync_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

// answering changes some of a real store's answers.
type answering func(*http.Request, *http.Response)

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		a(request, response)
	}
	return response, err
}

// Without s3:ListBucket the HEAD of an absent key is a 403, which must not read
// as a missing object nor as a mystery (s3fs#591, django-storages#1104).
func TestAbsentKeyIsDenied(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	w.deps.StoreTransport = answering(func(request *http.Request, response *http.Response) {
		if request.Method == http.MethodHead && response.StatusCode == http.StatusNotFound {
			response.StatusCode, response.Status = http.StatusForbidden, "403 Forbidden"
		}
	})
	_, err := w.run()
	w.checkFailed(err, failure.Denied, "s3:ListBucket to tell an absent key")
}

// A store that ignores conditions says success to both writers (seaweedfs#8800).
// The run says so, records it, and delivers.
func TestStoreIgnoresConditions(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	w.deps.StoreTransport = answering(func(_ *http.Request, response *http.Response) {
		if response.StatusCode == http.StatusPreconditionFailed {
			response.Body.Close()
			response.StatusCode, response.Status, response.Body = http.StatusOK, "200 OK", io.NopCloser(strings.NewReader(""))
		}
	})
	result := w.mustRun()
	if w.manifest().StoreCapabilities.ConditionalPut || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "ignores conditional writes") {
		t.Errorf("capabilities %+v, warnings %q", w.manifest().StoreCapabilities, result.Warnings)
	}
}

// A store that cannot list parts is used, and the loss is said.
func TestStoreDoesNotListParts(t *testing.T) {
	w := newWorld(t, nil)
	w.deps.StoreTransport = answering(func(request *http.Request, response *http.Response) {
		if request.Method == http.MethodGet && request.URL.Query().Has("uploadId") {
			response.StatusCode, response.Status = http.StatusNotImplemented, "501 Not Implemented"
		}
	})
	w.deps.Attempts = 1
	result := w.mustRun()
	if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "starts from its beginning") {
		t.Errorf("warnings %q", result.Warnings)
	}
}

// Memory follows the budget and not the model (kserve#5326, opendatahub-io/
// kserve#895): a model three times the budget stays within it, and 48 MiB.
func TestMemoryStaysWithinTheBudget(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 192 * mebibyte })
	w.plan.MemoryBytes = 64 * mebibyte
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak.Store(max(peak.Load(), now.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	_, err := w.run()
	close(stop)
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	if used := int64(peak.Load()) - int64(before.HeapInuse); used > w.plan.MemoryBytes+48*mebibyte {
		t.Errorf("the heap grew by %d MiB for a budget of 64 MiB", used/mebibyte)
	}
}
