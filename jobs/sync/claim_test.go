package sync_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

const otherRepo = "lab/other"

// newFlat is a world of one flat prefix, a model of two revisions, main and old,
// and another model.
func newFlat(t *testing.T) *world {
	w := newWorld(t, func(o *hub.Options) {
		o.Models = []hub.Model{
			{Name: repo, Bytes: 8 << 20, Shards: 2},
			{Name: repo, Bytes: 8 << 20, Shards: 3, Branch: "old", Files: map[string][]byte{"old.txt": []byte("x")}},
			{Name: otherRepo, Bytes: 1 << 20, Seed: 9},
		}
	})
	w.plan.Flat, w.deps.Beat = true, 500*time.Millisecond
	return w
}

// truth checks that a manifest, if there is one, names right objects alone, and
// that nothing of another delivery lies beside them.
func (w *world) truth(revision string) {
	w.t.Helper()
	keys := w.store.Keys(w.t, bucket)
	if !slices.Contains(keys, w.prefix()+"/"+record.ManifestName) {
		w.t.Fatalf("there is no manifest: %q", keys)
	}
	manifest := w.manifest()
	if want, _ := w.hub.Commit(repo, revision); manifest.Revision != want {
		w.t.Errorf("the manifest is of %s, want %s", manifest.Revision, revision)
	}
	listed := map[string]bool{w.prefix() + "/" + record.ManifestName: true}
	for _, file := range manifest.Files {
		key := w.prefix() + "/" + file.Path
		listed[key] = true
		if !slices.Contains(keys, key) || digestOf(w.read(key)) != file.SHA256 {
			w.t.Errorf("the manifest is false: %s", file.Path)
		}
	}
	for _, key := range keys {
		if !listed[key] {
			w.t.Errorf("%s is there as well", key)
		}
	}
}

// Two revisions race for one flat prefix: the one that comes later ends with one
// clear line and leaves nothing, whenever it comes; the other's manifest is true.
func TestFlatRace(t *testing.T) {
	for name, marks := range map[string]string{"while the first transfers": "config.json", "right before its manifest": record.ManifestName} {
		t.Run(name, func(t *testing.T) {
			w := newFlat(t)
			second, outcome := w.plan, make(chan error, 1)
			second.Revision = "old"
			plain := w.deps
			var once gosync.Once
			w.deps.StoreTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+marks) {
					once.Do(func() {
						_, err := sync.Run(t.Context(), second, plain)
						outcome <- err
					})
				}
				return http.DefaultTransport.RoundTrip(r)
			})
			if _, err := w.run(); err != nil {
				t.Fatal(err)
			}
			commit, _ := w.hub.Commit(repo, "main")
			if err := <-outcome; failure.KindOf(err) != failure.Failed || !strings.Contains(err.Error(), "another delivery holds this prefix: "+repo+" at "+commit) {
				t.Errorf("the second: %v", err)
			}
			w.truth("main")
		})
	}
}

// A run that was stopped for longer than its claim lasts finds at its next look
// that it lost the prefix, and ends; the other's manifest stays true.
func TestFlatClaimLost(t *testing.T) {
	w := newFlat(t)
	second := w.deps
	var once gosync.Once
	reached, resume := make(chan bool), make(chan bool)
	w.deps.StoreTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
		frozen := false
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/config.json") {
			once.Do(func() { frozen = true })
		}
		if frozen {
			close(reached)
			<-resume
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	// Its clock stands still too.
	w.deps.Beat = time.Hour
	plan, outcome := w.plan, make(chan error, 1)
	first := w.deps
	go func() { _, err := sync.Run(t.Context(), plan, first); outcome <- err }()
	<-reached
	w.plan.Revision, w.deps = "old", second
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	close(resume)
	if err := <-outcome; err == nil || !strings.Contains(err.Error(), "another delivery") {
		t.Errorf("the first: %v", err)
	}
	if got := w.manifest(); got.Revision == "" {
		t.Error("no manifest")
	}
}

// A run that cannot renew its claim stops writing before another run may take
// the prefix, also while an upload of it waits for the store.
func TestFlatClaimExpires(t *testing.T) {
	w := newFlat(t)
	var cut atomic.Bool
	w.deps.StoreTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/config.json") {
			cut.Store(true)
		}
		if cut.Load() {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	begun := time.Now()
	_, err := w.run()
	if failure.KindOf(err) != failure.Unreachable || !strings.Contains(err.Error(), "claim") {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	w.deps.StoreTransport = nil
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.manifest()
}

// A run is killed after it took the manifest of a flat prefix away. The next one
// still knows what was there, and removes it.
func TestFlatKilledMidChange(t *testing.T) {
	w := newFlat(t)
	w.plan.Revision = "old"
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.plan.Revision = "main"
	ctx, kill := context.WithCancel(t.Context())
	var dead atomic.Bool
	w.deps.StoreTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if dead.Load() {
			return nil, errors.New("network is unreachable")
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, record.ManifestName) {
			dead.Store(true)
			kill()
		}
		return response, err
	})
	if _, err := sync.Run(ctx, w.plan, w.deps); err == nil {
		t.Fatal("the run was not killed")
	}
	w.deps.StoreTransport = nil
	result, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	w.truth("main")
	if result.Removed.Files == 0 || !w.said(sync.EventRemoved, "old.txt") || len(result.Warnings) > 0 {
		t.Errorf("removed %+v, warnings %q", result.Removed, result.Warnings)
	}
}

// What a flat delivery would delete is told by the dry run.
func TestFlatDryRunTellsRemovals(t *testing.T) {
	w := newFlat(t)
	w.plan.Revision = "old"
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	w.plan.Revision, w.plan.DryRun = "main", true
	result, err := w.run()
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, file := range result.Files {
		if file.Action == record.ActionRemove {
			removed = append(removed, file.Path)
		}
	}
	if !slices.Contains(removed, "old.txt") || result.Removed.Files != len(removed) || len(result.Warnings) > 0 {
		t.Errorf("removed %q of %+v, warnings %q", removed, result.Removed, result.Warnings)
	}
}

// Another model's prefix is replaced on request alone, and the prefix of another
// revision not at all.
func TestFlatRefuses(t *testing.T) {
	w := newFlat(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	before := w.store.Keys(t, bucket)
	w.plan.Repo = otherRepo
	if _, err := w.run(); failure.KindOf(err) != failure.Usage || !strings.Contains(failure.HintOf(err), "--replace") {
		t.Errorf("another model: %v", err)
	}
	if !slices.Equal(before, w.store.Keys(t, bucket)) {
		t.Error("the prefix changed")
	}
	w.plan.Replace = true
	if _, err := w.run(); err != nil {
		t.Error(err)
	}

	whole := w.plan
	whole.Repo, whole.Flat, whole.Replace = repo, false, false
	result, err := sync.Run(t.Context(), whole, w.deps)
	if err != nil {
		t.Fatal(err)
	}
	whole.Flat, whole.Destination, whole.Revision = true, result.Location, "old"
	if _, err := sync.Run(t.Context(), whole, w.deps); failure.KindOf(err) != failure.Usage || !strings.Contains(err.Error(), "immutable one of another revision") {
		t.Errorf("over an immutable prefix: %v", err)
	}
}

// A sync of one pod comes between the workers of another: a worker that is
// replaced meanwhile and the first one do not wait for each other.
func TestFlatWorkers(t *testing.T) {
	w := newFlat(t)
	w.plan.Workers, w.deps.Run, w.deps.Patience = 2, "Job a", time.Minute
	traffic := &served{bytes: make(map[int]int64)}
	first := make(chan error, 1)
	go func() { _, err := w.worker(t.Context(), 0, traffic); first <- err }()
	w.waitFor(sync.EventWaiting)
	// An older release, which knows of no claim, writes a manifest.
	w.replace(w.prefix()+"/"+record.ManifestName, []byte(`{}`), nil)
	if _, err := w.worker(t.Context(), 1, traffic); err != nil {
		t.Error(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	w.truth("main")
}

// A narrower plan neither shrinks a delivery nor calls it complete while a file
// that its manifest promises is missing.
func TestNarrowerPlan(t *testing.T) {
	for name, change := range map[string]func(*record.SyncPlan){
		"exclude": func(p *record.SyncPlan) { p.Exclude = []string{"config.json"} },
		"include": func(p *record.SyncPlan) { p.Include = []string{"tokenizer.json"} },
		"workers": func(p *record.SyncPlan) { p.Exclude = []string{"config.json"}; p.Preset = record.PresetVLLM },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
			w.mustRun()
			before := w.manifest()
			w.remove(w.prefix() + "/config.json")
			change(&w.plan)
			result := w.mustRun()
			if after := w.manifest(); result.AlreadyComplete || after.RootDigest != before.RootDigest || !after.CompleteRepo || len(after.Exclude)+len(after.Include) > 0 {
				t.Errorf("complete already %v, %d files of %d, %+v", result.AlreadyComplete, after.FileCount, before.FileCount, after.Exclude)
			}
			if len(result.Warnings) != 1 || !strings.Contains(result.Warnings[0], "stay part of it") {
				t.Errorf("warnings %q", result.Warnings)
			}
		})
	}
}
