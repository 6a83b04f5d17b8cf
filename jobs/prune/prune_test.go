package prune_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/prune"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// The revisions of the tests, in the order in which they were uploaded.
var (
	oldest = strings.Repeat("1", 40)
	middle = strings.Repeat("2", 40)
	newest = strings.Repeat("3", 40)
	broken = strings.Repeat("4", 40)
	alien  = strings.Repeat("5", 40)
)

type world struct {
	t      *testing.T
	server *s3server.Server
	bucket *store.Bucket
	plan   record.PrunePlan
	// later is the clock: all was written long ago.
	later time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := s3server.Start(t)
	bucket, err := store.Open(t.Context(), store.Config{Bucket: server.Bucket(t, "models"), Endpoint: server.URL, Credentials: server.Credentials(), Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, server: server, bucket: bucket, later: 1000 * time.Hour,
		plan: record.PrunePlan{TypeMeta: record.Meta(record.KindPrunePlan), Location: "s3://models/base", S3Endpoint: server.URL, Keep: 1}}
	for i, revision := range []string{oldest, middle, newest} {
		w.complete("base/o/n/"+revision, revision, "kubectl-inference", time.Unix(int64(i), 0))
	}
	w.put("base/o/n/"+broken+"/model.safetensors", "abc")
	w.put("base/readme.txt", "x")
	w.put("elsewhere/o/n/"+oldest+"/model.safetensors", "x")
	return w
}

func (w *world) put(key, content string) {
	w.t.Helper()
	sum := sha256.Sum256([]byte(content))
	metadata := map[string]string{"sha256": hex.EncodeToString(sum[:])}
	if strings.HasSuffix(key, ".txt") {
		metadata = nil
	}
	if _, err := w.bucket.Put(w.t.Context(), key, []byte(content), store.PutOptions{Metadata: metadata}); err != nil {
		w.t.Fatal(err)
	}
}

// complete writes a revision of two files, signed, with its manifest.
func (w *world) complete(prefix, revision, tool string, uploaded time.Time) {
	w.t.Helper()
	manifest := record.Manifest{ModelID: "o/n", Revision: revision, UploadedAt: uploaded.UTC(), Tool: record.ManifestTool{Name: tool}}
	for _, name := range []string{"config.json", "sub/model.safetensors"} {
		sum := sha256.Sum256([]byte(name))
		manifest.Files = append(manifest.Files, record.ManifestFile{Path: name, Size: int64(len(name)), SHA256: hex.EncodeToString(sum[:])})
		w.put(prefix+"/"+name, name)
	}
	if err := manifest.Seal(); err != nil {
		w.t.Fatal(err)
	}
	data, err := record.Encode(manifest)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(prefix+"/model.sig", "signature")
	w.put(prefix+"/"+record.ManifestName, string(data))
}

func (w *world) run() record.PruneResult {
	w.t.Helper()
	result, err := prune.Run(w.t.Context(), w.plan, prune.Deps{Credentials: w.server.Credentials(), Attempts: 2, Now: func() time.Time { return time.Now().Add(w.later) }})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// actions maps the first digit of each revision to its action and reason.
func actions(result record.PruneResult) map[string]string {
	all := map[string]string{}
	for _, revision := range result.Revisions {
		all[revision.Revision[:1]] = revision.Action + ": " + revision.Reason
	}
	return all
}

func (w *world) left() map[string]int {
	left := map[string]int{}
	for _, key := range w.server.Keys(w.t, "models") {
		if i := strings.Index(key, "/n/"); i >= 0 && strings.HasPrefix(key, "base/") {
			left[key[i+3:i+4]]++
			continue
		}
		left[key]++
	}
	return left
}

func TestDryRunThenApply(t *testing.T) {
	w := newWorld(t)
	before := w.server.Keys(t, "models")
	want := map[string]string{"1": "delete: not used", "2": "delete: not used", "3": "keep: among the newest 1 of its model", "4": "delete: never finished"}
	result := w.run()
	if diff := cmp.Diff(want, actions(result)); diff != "" || result.Applied || result.Deleted.Files != 9 || result.Other.Files != 1 {
		t.Errorf("%+v (-want +got):\n%s", result, diff)
	}
	if !slices.Equal(before, w.server.Keys(t, "models")) {
		t.Fatal("a dry run deletes")
	}
	upload, err := w.bucket.CreateUpload(t.Context(), "base/o/n/"+broken+"/other.safetensors", store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := upload.Part(t.Context(), 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	w.plan.Apply = true
	applied := w.run()
	if diff := cmp.Diff(want, actions(applied)); diff != "" || applied.Deleted != result.Deleted || !applied.Applied {
		t.Errorf("%+v (-want +got):\n%s", applied, diff)
	}
	wantLeft := map[string]int{"3": 4, "base/readme.txt": 1, "elsewhere/o/n/" + oldest + "/model.safetensors": 1}
	if diff := cmp.Diff(wantLeft, w.left()); diff != "" || w.server.OpenUploads(t, "models") != 0 {
		t.Errorf("%d uploads, left (-want +got):\n%s", w.server.OpenUploads(t, "models"), diff)
	}
	if again := w.run(); again.Deleted.Files != 0 || len(again.Revisions) != 1 {
		t.Errorf("again: %+v", again)
	}
}

func TestKeeps(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		change func(*record.PrunePlan)
		later  time.Duration
		want   map[string]string
	}{
		"a reference to a place": {func(p *record.PrunePlan) {
			p.References = []record.Reference{{Prefix: "base/o/n/" + oldest, Holder: "Deployment a/b"}, {Prefix: "base/o/n/" + middle + "/sub/model.safetensors", Holder: "Pod a/c"}}
		}, 0, map[string]string{"1": "keep: used by Deployment a/b", "2": "keep: used by Pod a/c", "3": "keep: among the newest 1 of its model", "4": "delete: never finished"}},
		"a reference to a commit": {func(p *record.PrunePlan) { p.References = []record.Reference{{Revision: middle, Holder: "Pod a/c"}} }, 0,
			map[string]string{"1": "delete: not used", "2": "keep: used by Pod a/c", "3": "keep: among the newest 1 of its model", "4": "delete: never finished"}},
		"a mounted bucket": {func(p *record.PrunePlan) { p.References = []record.Reference{{Holder: "PersistentVolume m"}} }, 0,
			map[string]string{"1": "keep: used by PersistentVolume m", "2": "keep: used by PersistentVolume m", "3": "keep: used by PersistentVolume m", "4": "keep: used by PersistentVolume m"}},
		"a running sync": {func(p *record.PrunePlan) {
			p.References = []record.Reference{{Prefix: "base/o/n", Holder: "the running sync of Job a/b"}}
		}, 0, map[string]string{"1": "keep: used by the running sync of Job a/b", "2": "keep: used by the running sync of Job a/b", "3": "keep: used by the running sync of Job a/b", "4": "keep: used by the running sync of Job a/b"}},
		"a place that begins so": {func(p *record.PrunePlan) {
			p.References = []record.Reference{{Prefix: "base/o/name", Holder: "Pod x"}, {Prefix: "bas", Holder: "Pod y"}}
		}, 0, map[string]string{"1": "delete: not used", "2": "delete: not used", "3": "keep: among the newest 1 of its model", "4": "delete: never finished"}},
		"what is unread": {func(p *record.PrunePlan) { p.Unread = []string{"pods of namespace b"} }, 0,
			map[string]string{"1": "refuse: it may be in use: cannot read pods of namespace b", "2": "refuse: it may be in use: cannot read pods of namespace b", "3": "keep: among the newest 1 of its model", "4": "refuse: it may be in use: cannot read pods of namespace b"}},
		"unread, and told so": {func(p *record.PrunePlan) { p.Unread, p.EvenIfUnread = []string{"pods of namespace b"}, true }, 0,
			map[string]string{"1": "delete: not used", "2": "delete: not used", "3": "keep: among the newest 1 of its model", "4": "delete: never finished"}},
		"two": {func(p *record.PrunePlan) { p.Keep = 2 }, 0, map[string]string{"1": "delete: not used", "2": "keep: among the newest 2 of its model", "3": "keep: among the newest 2 of its model", "4": "delete: never finished"}},
		"more than are finished": {func(p *record.PrunePlan) { p.Keep = 4 }, 0, map[string]string{"1": "keep: among the newest 4 of its model", "2": "keep: among the newest 4 of its model",
			"3": "keep: among the newest 4 of its model", "4": "keep: its model has fewer than 4 finished revisions: run its sync again"}},
		"none": {func(p *record.PrunePlan) { p.Keep = 0 }, 0, map[string]string{"1": "delete: not used", "2": "delete: not used", "3": "delete: not used", "4": "delete: never finished"}},
		"young": {func(p *record.PrunePlan) { p.OlderThanSeconds = 3600 }, 30 * time.Minute,
			map[string]string{"1": "keep: changed 30m0s ago", "2": "keep: changed 30m0s ago", "3": "keep: among the newest 1 of its model", "4": "keep: changed 30m0s ago: a sync may be at work"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, later := w.plan, w.later
			defer func() { w.plan, w.later = plan, later }()
			if test.later > 0 {
				w.later = test.later
			}
			test.change(&w.plan)
			if diff := cmp.Diff(test.want, actions(w.run())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusesForeign: what another program wrote is not deleted.
func TestRefusesForeign(t *testing.T) {
	w := newWorld(t)
	w.plan.Apply, w.plan.Keep = true, 0
	w.complete("base/o/n/"+alien, alien, "uploader", time.Unix(9, 0))
	w.put("base/o/n/"+oldest+"/lora/notes.txt", "mine")
	w.put("base/o/n/"+broken+"/notes.txt", "mine")
	w.put("base/o/n/"+middle+"/"+record.ManifestName, `{"schema_version": 9}`)
	got := actions(w.run())
	want := map[string]string{
		"1": "refuse: it holds 1 objects that no sync wrote, such as lora/notes.txt (--extra deletes them too)",
		"2": "refuse: its manifest is not ours: read manifest: schema_version 9 is not known, this build reads 1 and 2",
		"3": "delete: not used",
		"4": "refuse: it holds 1 objects that no sync wrote, such as notes.txt (--extra deletes them too)",
		"5": "refuse: its manifest was written by another program",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := w.left()
	if left["1"] != 5 || left["2"] != 4 || left["3"] != 0 || left["4"] != 2 || left["5"] != 4 {
		t.Errorf("left are %v", left)
	}
	w.plan.Extra = true
	w.run()
	if left := w.left(); left["1"] != 0 || left["4"] != 0 || left["2"] != 4 || left["5"] != 4 {
		t.Errorf("with --extra are left %v", left)
	}
}

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		change func(*record.PrunePlan)
		kind   failure.Kind
	}{
		"no place":    {func(p *record.PrunePlan) { p.Location = "models" }, failure.Usage},
		"negative":    {func(p *record.PrunePlan) { p.Keep = -1 }, failure.Usage},
		"an endpoint": {func(p *record.PrunePlan) { p.S3Endpoint = "x" }, failure.Usage},
		"no bucket":   {func(p *record.PrunePlan) { p.Location = "s3://gone/base" }, failure.NotFound},
	} {
		plan := w.plan
		test.change(&plan)
		if _, err := prune.Run(t.Context(), plan, prune.Deps{Credentials: w.server.Credentials(), Attempts: 1}); failure.KindOf(err) != test.kind || failure.HintOf(err) == "" {
			t.Errorf("%s: kind %d, %v", name, failure.KindOf(err), err)
		}
	}
}

// TestLeavesOtherDeliveries: a folder named after a commit can be a file's own
// folder in a delivery. Nothing that any manifest lists is deleted.
func TestLeavesOtherDeliveries(t *testing.T) {
	const cache = "prod/snap/snapshots/"
	for name, test := range map[string]struct {
		build    func(w *world)
		location string
		// want has the revisions that are found, warning what is told.
		want    map[string]string
		warning string
	}{
		"a flat delivery with a cache of the Hub": {func(w *world) {
			w.put(cache+alien+"/model.safetensors", "a")
			w.complete("prod/snap", newest, "kubectl-inference", time.Unix(1, 0))
		}, "s3://models/prod", map[string]string{}, "s3://models/prod/snap is a delivery itself"},
		"the base lies in it": {func(w *world) {
			w.put(cache+alien+"/model.safetensors", "a")
			w.complete("prod/snap", newest, "kubectl-inference", time.Unix(1, 0))
		}, "s3://models/prod/snap/snapshots", map[string]string{}, "s3://models/prod/snap is a delivery itself"},
		"the base is it": {func(w *world) {
			w.put(cache+alien+"/model.safetensors", "a")
			w.complete("prod/snap", newest, "kubectl-inference", time.Unix(1, 0))
		}, "s3://models/prod/snap", map[string]string{}, "s3://models/prod/snap is a delivery itself"},
		"another program's": {func(w *world) {
			w.put(cache+alien+"/model.safetensors", "a")
			w.put("prod/snap/"+record.ManifestName, "{}")
		}, "s3://models/prod", map[string]string{}, "s3://models/prod/snap is a delivery itself"},
		"one that is under way": {func(w *world) {
			w.put("prod/snap/sub/"+alien+"/model.safetensors", "a")
			w.put("prod/snap/"+record.CheckpointFolder+"x.json", "{}")
		}, "s3://models/prod", map[string]string{}, "s3://models/prod/snap is a delivery itself"},
		"a complete revision in it": {func(w *world) {
			w.complete("prod/snap/o/n/"+oldest, oldest, "kubectl-inference", time.Unix(1, 0))
			w.complete("prod/snap", newest, "kubectl-inference", time.Unix(1, 0))
		}, "s3://models/prod", map[string]string{}, "s3://models/prod/snap is a delivery itself"},
		"the bucket itself": {func(w *world) {
			w.put(alien+"/model.safetensors", "a")
			w.put(record.ManifestName, "{}")
		}, "s3://models/prod", map[string]string{}, "s3://models is a delivery itself"},
		"a cache whose manifest is lost": {func(w *world) { w.put(cache+alien+"/model.safetensors", "a") }, "s3://models/prod",
			map[string]string{"5": "refuse: it has no manifest, and looks like part of a cache of the Hub that lies in a delivery"}, ""},
		"below a folder named after a commit": {func(w *world) {
			w.put("prod/"+alien+"/other.safetensors", "a")
			w.complete("prod/"+alien+"/flat", newest, "kubectl-inference", time.Unix(1, 0))
			w.complete("prod/"+alien+"/o/n/"+oldest, oldest, "kubectl-inference", time.Unix(1, 0))
		}, "s3://models/prod", map[string]string{"1": "delete: not used"}, "s3://models/prod/" + alien + "/flat is a delivery itself"},
		"in a complete revision": {func(w *world) {
			w.complete("prod/o/n/"+oldest, oldest, "kubectl-inference", time.Unix(1, 0))
			w.complete("prod/o/n/"+oldest+"/lora", newest, "kubectl-inference", time.Unix(1, 0))
		}, "s3://models/prod", map[string]string{"1": "refuse: another delivery lies in it, with lora/" + record.ManifestName}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := s3server.Start(t)
			bucket, err := store.Open(t.Context(), store.Config{Bucket: server.Bucket(t, "models"), Endpoint: server.URL, Credentials: server.Credentials(), Attempts: 2})
			if err != nil {
				t.Fatal(err)
			}
			w := &world{t: t, server: server, bucket: bucket, later: 1000 * time.Hour,
				plan: record.PrunePlan{TypeMeta: record.Meta(record.KindPrunePlan), Location: test.location, S3Endpoint: server.URL, Apply: true, Extra: true}}
			test.build(w)
			before := server.Keys(t, "models")
			result := w.run()
			if diff := cmp.Diff(test.want, actions(result)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if told := strings.Join(result.Warnings, "\n"); (test.warning == "") != (told == "") || !strings.Contains(told, test.warning) {
				t.Errorf("warnings: %s", told)
			}
			want := slices.DeleteFunc(before, func(key string) bool {
				return test.want["1"] == "delete: not used" && strings.Contains(key, "/o/n/"+oldest+"/")
			})
			if diff := cmp.Diff(want, server.Keys(t, "models")); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}
