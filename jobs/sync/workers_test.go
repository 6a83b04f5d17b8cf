package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

// served counts the file bytes that the Hub and its CDN sent, by worker.
type served struct {
	bytes map[int]int64
	mu    gosync.Mutex
}

func (s *served) transport(worker int) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		response, err := http.DefaultTransport.RoundTrip(request)
		if err == nil && !strings.HasPrefix(request.URL.Path, "/api/") {
			response.Body = &counted{ReadCloser: response.Body, add: func(n int) { s.mu.Lock(); s.bytes[worker] += int64(n); s.mu.Unlock() }}
		}
		return response, err
	})
}

type counted struct {
	io.ReadCloser
	add func(int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.add(n)
	return n, err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// worker runs one of the plan's workers.
func (w *world) worker(ctx context.Context, index int, traffic *served) (record.SyncResult, error) {
	deps := w.deps
	deps.Index, deps.Now, deps.HubTransport = index, time.Now, traffic.transport(index)
	return sync.Run(ctx, w.plan, deps)
}

func newWorkers(t *testing.T, workers int) (*world, *served) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Shards, o.Models[0].Bytes = 6, 60<<20 })
	w.plan.Workers = workers
	w.deps.Patience = time.Minute
	return w, &served{bytes: make(map[int]int64)}
}

// TestWorkers: three workers bring over one model together; no byte of a file
// is read twice, and the first alone writes the manifest.
func TestWorkers(t *testing.T) {
	w, traffic := newWorkers(t, 3)
	results := make([]record.SyncResult, 3)
	var group gosync.WaitGroup
	for index := range results {
		group.Go(func() {
			var err error
			if results[index], err = w.worker(t.Context(), index, traffic); err != nil {
				t.Errorf("worker %d: %v", index, err)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	w.checkPrefix(results[0])
	if results[1].Worker != "2 of 3" || results[1].ManifestSHA256 != "" || results[0].Worker != "" {
		t.Errorf("worker 2 says %q, manifest %q; the first says %q", results[1].Worker, results[1].ManifestSHA256, results[0].Worker)
	}
	var sum int64
	for worker, bytes := range traffic.bytes {
		if share := results[0].Total.Bytes / 3; bytes < share/2 || bytes > 2*share {
			t.Errorf("worker %d brought over %d bytes of %d", worker, bytes, results[0].Total.Bytes)
		}
		sum += bytes
	}
	if sum != results[0].Total.Bytes {
		t.Errorf("%d bytes were read of the Hub, the model has %d", sum, results[0].Total.Bytes)
	}

	// Again: each finds the manifest.
	for index := range results {
		result, err := w.worker(t.Context(), index, traffic)
		if err != nil || !result.AlreadyComplete || result.DownloadedBytes != 0 {
			t.Errorf("worker %d again: %+v, error %v", index, result, err)
		}
	}
}

// TestWorkerReplaced: a worker that was killed in the middle is replaced by one
// that does the same part; until then there is no manifest.
func TestWorkerReplaced(t *testing.T) {
	w, traffic := newWorkers(t, 2)
	ctx, kill := context.WithCancel(t.Context())
	w.deps.StoreTransport = killer(kill, 3)
	if _, err := w.worker(ctx, 1, traffic); !errors.Is(err, context.Canceled) {
		t.Fatalf("the killed worker: %v", err)
	}
	w.deps.StoreTransport = nil
	var first record.SyncResult
	var firstErr error
	ended := make(chan struct{})
	go func() { defer close(ended); first, firstErr = w.worker(t.Context(), 0, traffic) }()
	w.waitFor(sync.EventWaiting)
	if keys := strings.Join(w.store.Keys(t, bucket), " "); strings.Contains(keys, record.ManifestName) {
		t.Error("there is a manifest while files lack")
	}
	if _, err := w.worker(t.Context(), 1, traffic); err != nil {
		t.Fatal(err)
	}
	<-ended
	if firstErr != nil {
		t.Fatal(firstErr)
	}
	w.checkPrefix(first)
}

// killer ends a worker at its nth upload.
func killer(kill func(), n int) http.RoundTripper {
	var mu gosync.Mutex
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		mu.Lock()
		if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "model-") {
			if n--; n == 0 {
				kill()
			}
		}
		mu.Unlock()
		return http.DefaultTransport.RoundTrip(request)
	})
}

// waitFor waits until an event of that name was heard.
func (w *world) waitFor(name string) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		for _, event := range w.events {
			if event.Name == name {
				w.mu.Unlock()
				return
			}
		}
		w.mu.Unlock()
	}
	w.t.Fatalf("no event %q", name)
}

// TestFirstWorkerAlone: where the others never run, the first brings over the
// rest once its patience is at an end, and says so.
func TestFirstWorkerAlone(t *testing.T) {
	w, traffic := newWorkers(t, 3)
	w.deps.Patience = 50 * time.Millisecond
	result, err := w.worker(t.Context(), 0, traffic)
	if err != nil {
		t.Fatal(err)
	}
	w.checkPrefix(result)
	if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "no file of the other workers has arrived") {
		t.Errorf("warnings: %q", result.Warnings)
	}
}

// TestWorkersHeal: an object is damaged after the manifest. The second worker
// waits until the first has taken the false promise away.
func TestWorkersHeal(t *testing.T) {
	w, traffic := newWorkers(t, 2)
	whole := w.plan
	whole.Workers = 1
	result, err := sync.Run(t.Context(), whole, w.deps)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range result.Files {
		if strings.HasSuffix(file.Path, ".safetensors") {
			key := w.prefix() + "/" + file.Path
			if _, err := w.store.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: new(bucket), Key: &key, Body: strings.NewReader("damage")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	results := make(chan error, 2)
	go func() { _, err := w.worker(t.Context(), 1, traffic); results <- err }()
	time.Sleep(300 * time.Millisecond)
	if keys := strings.Join(w.store.Keys(t, bucket), " "); !strings.Contains(keys, record.ManifestName) {
		t.Error("the second worker removed the manifest")
	}
	healed, err := w.worker(t.Context(), 0, traffic)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	w.checkPrefix(healed)
}

// TestGatedIsKnownAtOnce: a dry run says what the transfer would end with.
func TestGatedIsKnownAtOnce(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Gated = true })
	w.plan.DryRun, w.deps.InJob = true, true
	_, err := w.run()
	if failure.KindOf(err) != failure.Denied || !strings.Contains(failure.HintOf(err), "--hub-secret") {
		t.Errorf("%v, hint %q", err, failure.HintOf(err))
	}
	if _, err := json.Marshal(w.events); err != nil {
		t.Error(err)
	}
}
