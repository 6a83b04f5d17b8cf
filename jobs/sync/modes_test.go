package sync_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	gosync "sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

// TestDryRunWritesNothing: of the files only the index is read, which tells
// whether all shards are part of the plan.
func TestDryRunWritesNothing(t *testing.T) {
	w := newWorld(t, nil)
	w.plan.DryRun, w.plan.Exclude = true, []string{"*.md"}
	result, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	if keys := w.store.Keys(t, bucket); len(keys) != 0 {
		t.Errorf("wrote %v", keys)
	}
	if result.Uploaded != result.Total || result.Skipped.Files != 1 || result.ManifestSHA256 != "" || !result.DryRun || result.DownloadedBytes > 1<<10 {
		t.Errorf("result: %+v", result)
	}
	actions := make(map[string]int)
	for _, file := range result.Files {
		actions[file.Action]++
	}
	if diff := cmp.Diff(map[string]int{record.ActionUpload: result.Total.Files, record.ActionSkip: 1}, actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// A listing of many pages, through a mirror that names the official host in its
// next links (hf-mirror-site#65), of a repository that was renamed and whose
// redirect loses the query (huggingface_hub#4637). The token stays at home.
func TestListingByPages(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) {
		o.PageSize, o.NextHost = 3, "https://hub.example"
		o.Models[0].RenamedFrom = "lab/former"
		o.Tokens = []hub.Token{{Value: "hf_token"}}
	})
	w.plan.Repo, w.deps.Token = "lab/former", "hf_token"
	result, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(w.hub.Entries(repo, "main")); result.Total.Files != want || result.Repo != repo {
		t.Errorf("synced %d files of %s, want %d of %s", result.Total.Files, result.Repo, want, repo)
	}
	if told := strings.Join(result.Warnings, "\n"); !strings.Contains(told, "the Hub's name of lab/former is lab/tiny") || !strings.Contains(told, "the prefix keeps the name lab/former") || !strings.Contains(result.Location, "lab/former") {
		t.Errorf("the other name is not told: %q, %s", told, result.Location)
	}
	if n := w.hub.Stats().CDNTokens; n != 0 {
		t.Errorf("the token went to the CDN %d times", n)
	}
}

func TestRevisions(t *testing.T) {
	other := func(o *hub.Options) {
		o.Models[0].Bytes = 1 << 20
		o.Models = append(o.Models, hub.Model{Name: repo, Bytes: 1 << 20, Seed: 7, Branch: "refs/pr/3"})
	}
	w := newWorld(t, other)
	pull, _ := w.hub.Commit(repo, "refs/pr/3")
	for name, revision := range map[string]string{"branch": "main", "commit": w.commit(), "short commit": w.commit()[:8], "empty": ""} {
		w.plan.Revision = revision
		result, err := w.run()
		if err != nil || result.Revision != w.commit() {
			t.Errorf("%s: got %s, %v", name, result.Revision, err)
		}
	}
	w.plan.Revision = "refs/pr/3"
	result, err := w.run()
	if err != nil || result.Revision != pull || !strings.HasSuffix(result.Location, pull) {
		t.Errorf("reference: got %s at %s, %v", result.Revision, result.Location, err)
	}
}

// A flat prefix changes its revision: the old promise goes before the first new
// byte, and files that the new revision lacks do not stay (diffusers#14774).
func TestFlatChangesRevision(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) {
		o.Models = []hub.Model{
			{Name: repo, Bytes: 1 << 20, Shards: 2},
			{Name: repo, Bytes: 1 << 20, Shards: 3, Branch: "old", Files: map[string][]byte{"old.txt": []byte("x")}},
		}
	})
	w.plan.Flat, w.plan.Revision = true, "old"
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.plan.Revision = "main"

	w.hub.Inject(hub.Fault{Kind: hub.FaultStatus, Status: 503, On: hub.OnCDN})
	_, err := w.run()
	w.checkFailed(err, failure.Unreachable, "status 503")
	w.hub.Clear()

	// The interrupted run took the manifest away, and what only it had named.
	result, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range w.store.Keys(t, bucket) {
		if strings.HasSuffix(key, "of-00003.safetensors") || strings.HasSuffix(key, "old.txt") {
			t.Errorf("%s of the former revision stayed; warnings: %v", key, result.Warnings)
		}
	}
	if manifest := w.manifest(); manifest.Revision != w.commit() {
		t.Errorf("the manifest is of %s", manifest.Revision)
	}
}

// A preset that takes less than what is there leaves the larger promise alone.
func TestSupersetIsComplete(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	w.mustRun()
	w.plan.Preset = record.PresetVLLM
	result := w.mustRun()
	if !result.AlreadyComplete || len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "stay part of it") {
		t.Errorf("result: %+v", result)
	}
}

// The Job's pod is stopped in the middle: nothing but whole objects stays, and
// the next run reads only what is missing.
func TestCancelled(t *testing.T) {
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	emit := w.deps.Emit
	w.deps.Emit = func(event record.Event) {
		emit(event)
		if event.Name == sync.EventFile && event.Fields["path"] == shard {
			cancel()
		}
	}
	w.plan.Parallel = 1
	_, err := sync.Run(ctx, w.plan, w.deps)
	w.checkFailed(err, failure.Interrupted, "canceled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.deps.Emit = emit
	result := w.mustRun()
	if result.Present.Files == 0 || result.DownloadedBytes >= result.Total.Bytes {
		t.Errorf("present %+v, downloaded %d of %d", result.Present, result.DownloadedBytes, result.Total.Bytes)
	}
}

// Two Jobs of one plan end with one right prefix, and both succeed.
func TestRace(t *testing.T) {
	w := newWorld(t, nil)
	var group gosync.WaitGroup
	results := make([]record.SyncResult, 2)
	errs := make([]error, 2)
	for i := range results {
		group.Go(func() { results[i], errs[i] = w.run() })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(results[0].ManifestSHA256, results[1].ManifestSHA256); diff != "" {
		t.Errorf("the two name different manifests (-first +second):\n%s", diff)
	}
	w.checkPrefix(results[0])
}

// lossy loses the answers of some requests after the server has done them.
type lossy struct {
	next  http.RoundTripper
	loses func(*http.Request) bool
	mu    gosync.Mutex
	lost  map[string]bool
}

func (l *lossy) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	key := request.Method + request.URL.String()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || !l.loses(request) || l.lost[key] {
		return response, err
	}
	l.lost[key] = true
	response.Body.Close()
	return nil, errors.New("connection reset by peer")
}

// forgetful is a store that has forgotten an upload once it is complete, so that
// a repeated Complete is told that there is no such upload.
type forgetful struct{ lossy }

func (f *forgetful) RoundTrip(request *http.Request) (*http.Response, error) {
	f.mu.Lock()
	again := f.loses(request) && f.lost[request.Method+request.URL.String()]
	f.mu.Unlock()
	if !again {
		return f.lossy.RoundTrip(request)
	}
	return &http.Response{
		StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: request,
		Body: io.NopCloser(strings.NewReader("<Error><Code>NoSuchUpload</Code><Message>gone</Message></Error>")),
	}, nil
}

func TestCompleteIsForgotten(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) {
		// A large git file too, whose SHA-256 its upload could not carry.
		o.Models[0].Files = map[string][]byte{"corpus.txt": bytes.Repeat([]byte("0123456789"), 2<<20)}
		o.Models[0].Git = []string{"corpus.txt"}
	})
	transport := &forgetful{lossy{next: http.DefaultTransport, loses: isComplete, lost: make(map[string]bool)}}
	w.deps.StoreTransport = transport
	w.mustRun()
	if len(transport.lost) != 3 {
		t.Errorf("%d answers were lost, want 3", len(transport.lost))
	}
	w.deps.StoreTransport = nil
	if result := w.mustRun(); !result.AlreadyComplete {
		t.Errorf("uploaded again: %+v", result.Uploaded)
	}
}

func isComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

// A write whose answer is lost is repeated by the SDK, and the second answer is
// that it is done already. That is success.
func TestLostAnswers(t *testing.T) {
	tests := map[string]func(*http.Request) bool{
		"complete": isComplete,
		"part":     func(r *http.Request) bool { return r.Method == http.MethodPut && r.URL.Query().Has("partNumber") },
		"start of an upload, the probe's included": func(r *http.Request) bool {
			return r.Method == http.MethodPost && r.URL.Query().Has("uploads")
		},
		"manifest": func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, record.ManifestName)
		},
		"small file": func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/config.json")
		},
	}
	for name, loses := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			transport := &lossy{next: http.DefaultTransport, loses: loses, lost: make(map[string]bool)}
			w.deps.StoreTransport = transport
			w.mustRun()
			if len(transport.lost) == 0 {
				t.Error("no answer was lost")
			}
		})
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	result := w.mustRun()
	var names []string
	for _, event := range w.events {
		if event.Time.IsZero() || event.Message == "" || event.Level == "" {
			t.Errorf("incomplete event: %+v", event)
		}
		names = append(names, event.Name)
	}
	if names[0] != sync.EventPlan || names[len(names)-1] != record.EventProgress {
		t.Errorf("events: %v", names)
	}
	files := 0
	for _, name := range names {
		if name == sync.EventFile {
			files++
		}
	}
	last := w.events[len(w.events)-1]
	if files != result.Total.Files || *last.Done != *last.Total || *last.Done != float64(result.Total.Bytes) {
		t.Errorf("%d file events of %d files; last event: %+v", files, result.Total.Files, last)
	}
	if slices.Contains(names, sync.EventRetry) {
		t.Errorf("retries without a fault: %v", names)
	}
}

// A store that is away for a while is waited for, and the wait is told; nothing
// is given up meanwhile.
func TestStoreIsAway(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	away := &lossy{next: http.DefaultTransport, lost: make(map[string]bool), loses: func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/tokenizer.json")
	}}
	w.deps.StoreTransport = away
	w.mustRun()
	if !w.said(sync.EventRetry, "connection reset by peer, trying again in ") {
		t.Errorf("no event tells of the wait: %v", w.events)
	}
}

// A second Job waits for the first by the Lease, and then finds all done. What
// cannot be held is said, and the work goes on.
func TestHold(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	var held gosync.Mutex
	var asked []string
	w.deps.Hold = func(_ context.Context, bucket, prefix string, waiting func(string)) (func(), error) {
		asked = append(asked, bucket+"/"+prefix)
		if !held.TryLock() {
			waiting("inference-sync-a\x1b[31m")
			held.Lock()
		}
		return held.Unlock, nil
	}
	held.Lock()
	done := make(chan error, 1)
	go func() {
		_, err := w.run()
		done <- err
	}()
	for !w.said(sync.EventHeld, "another Job (inference-sync-a[31m) is syncing this prefix") {
		runtime.Gosched()
	}
	if n := len(w.store.Keys(t, bucket)); n != 0 {
		t.Errorf("%d objects were written before the Lease was held", n)
	}
	held.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if result := w.mustRun(); !result.AlreadyComplete {
		t.Error("the second did not find it complete")
	}
	if want := bucket + "/" + w.prefix(); len(asked) != 2 || asked[0] != want {
		t.Errorf("held %v, want %s", asked, want)
	}
	w.plan.DryRun = true
	if _, err := w.run(); err != nil || len(asked) != 2 {
		t.Errorf("a dry run held a Lease: %v", err)
	}
	w.plan.DryRun, w.plan.Preset = false, record.PresetVLLM
	w.deps.Hold = func(context.Context, string, string, func(string)) (func(), error) {
		return nil, errors.New("forbidden")
	}
	if result, err := w.run(); err != nil || len(result.Warnings) == 0 || !strings.Contains(result.Warnings[0], "not kept apart: forbidden") {
		t.Errorf("without a Lease: %v, %v", result.Warnings, err)
	}
}
