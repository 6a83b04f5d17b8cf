package sync_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub/hubtest"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

const (
	repo   = "lab/tiny"
	bucket = "models"
)

// world is a Hub with one model, an S3 server with one bucket, and a plan.
type world struct {
	t      *testing.T
	hub    *hubtest.Server
	store  *s3server.Server
	plan   record.SyncPlan
	deps   sync.Deps
	mu     gosync.Mutex
	events []record.Event
	waits  []time.Duration
	// skew is how far waits have moved the clock of hub and sync.
	skew time.Duration
}

// newWorld serves a model of two shards of 17 MiB, which are two parts each,
// unless change says otherwise.
func newWorld(t *testing.T, change func(*hub.Options)) *world {
	t.Helper()
	w := &world{t: t, store: s3server.Start(t)}
	options := hub.Options{Models: []hub.Model{{Name: repo, Bytes: 34 << 20}}, Now: w.now}
	if change != nil {
		change(&options)
	}
	w.hub = hubtest.Start(t, options)
	w.store.Bucket(t, bucket)
	w.plan = record.SyncPlan{
		TypeMeta: record.Meta(record.KindSyncPlan), Repo: repo, Revision: "main", HubEndpoint: w.hub.URL,
		Destination: "s3://" + bucket + "/llm", S3Endpoint: w.store.URL,
	}
	w.deps = sync.Deps{
		Credentials: w.store.Credentials(), Attempts: 4, Now: w.now, Version: "test",
		Emit: func(event record.Event) { w.mu.Lock(); defer w.mu.Unlock(); w.events = append(w.events, event) },
		Wait: func(_ context.Context, d time.Duration) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.waits = append(w.waits, d)
			w.skew += d
			return nil
		},
	}
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.skew)
}

func (w *world) run() (record.SyncResult, error) { return sync.Run(w.t.Context(), w.plan, w.deps) }

// mustRun runs the plan and checks that the prefix is then exactly the model.
func (w *world) mustRun() record.SyncResult {
	w.t.Helper()
	result, err := w.run()
	if err != nil {
		w.t.Fatalf("sync: %v\n%s", err, failure.Text(err))
	}
	w.checkPrefix(result)
	return result
}

func (w *world) commit() string {
	commit, _ := w.hub.Commit(repo, "main")
	return commit
}

func (w *world) prefix() string {
	prefix, err := w.plan.Prefix(w.commit())
	if err != nil {
		w.t.Fatal(err)
	}
	return prefix
}

func (w *world) read(key string) []byte {
	w.t.Helper()
	out, err := w.store.Client().GetObject(w.t.Context(), &s3.GetObjectInput{Bucket: new(bucket), Key: &key})
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Body.Close()
	data, err := io.ReadAll(out.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

func (w *world) manifest() record.Manifest {
	w.t.Helper()
	manifest, err := record.ParseManifest(w.read(w.prefix() + "/" + record.ManifestName))
	if err != nil {
		w.t.Fatal(err)
	}
	return manifest
}

// checkPrefix reads everything back: the keys, their bytes, and the manifest.
func (w *world) checkPrefix(result record.SyncResult) {
	w.t.Helper()
	manifest := w.manifest()
	want := []string{w.prefix() + "/" + record.ManifestName}
	for _, entry := range manifest.Files {
		want = append(want, w.prefix()+"/"+entry.Path)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, w.store.Keys(w.t, bucket)); diff != "" {
		w.t.Errorf("keys (-manifest +bucket):\n%s", diff)
	}
	served := make(map[string]hub.Entry)
	for _, entry := range w.hub.Entries(repo, "main") {
		served[entry.Path] = entry
	}
	for _, entry := range manifest.Files {
		sum := sha256.Sum256(w.read(w.prefix() + "/" + entry.Path))
		if got := hex.EncodeToString(sum[:]); got != served[entry.Path].SHA256 || got != entry.SHA256 {
			w.t.Errorf("%s: object %s, manifest %s, Hub %s", entry.Path, got, entry.SHA256, served[entry.Path].SHA256)
		}
	}
	if result.RootDigest != manifest.RootDigest || result.Revision != w.commit() || manifest.Revision != w.commit() {
		w.t.Errorf("result %+v does not fit the manifest", result)
	}
	sum := sha256.Sum256(w.read(w.prefix() + "/" + record.ManifestName))
	if got := hex.EncodeToString(sum[:]); got != result.ManifestSHA256 {
		w.t.Errorf("manifest digest: result %s, object %s", result.ManifestSHA256, got)
	}
	if n := w.store.OpenUploads(w.t, bucket); n != 0 {
		w.t.Errorf("%d uploads were left open", n)
	}
	if n := w.hub.Stats().CDNTokens; n != 0 {
		w.t.Errorf("the token went to the CDN %d times", n)
	}
}

// checkFailed asserts the kind and text of an error, and that it left no
// manifest and no open upload behind.
func (w *world) checkFailed(err error, kind failure.Kind, text string) {
	w.t.Helper()
	if err == nil {
		w.t.Fatal("the sync succeeded")
	}
	if failure.KindOf(err) != kind || !bytes.Contains([]byte(failure.Text(err)), []byte(text)) {
		w.t.Errorf("got kind %d:\n%swant kind %d and %q", failure.KindOf(err), failure.Text(err), kind, text)
	}
	if slices.Contains(w.store.Keys(w.t, bucket), w.prefix()+"/"+record.ManifestName) {
		w.t.Error("a manifest was written")
	}
	w.checkUploads()
}

// checkUploads asserts that no upload is left open but those that the next run
// goes on with: each has a checkpoint that names it.
func (w *world) checkUploads() {
	w.t.Helper()
	out, err := w.store.Client().ListMultipartUploads(w.t.Context(), &s3.ListMultipartUploadsInput{Bucket: new(bucket)})
	if err != nil {
		w.t.Fatal(err)
	}
	noted := make(map[string]bool)
	for _, key := range w.store.Keys(w.t, bucket) {
		if strings.Contains(key, "/"+record.CheckpointFolder) && !strings.HasSuffix(key, "/"+record.ClaimName) {
			if point := w.checkpoint(key); point.Checksum == "" {
				noted[point.Upload] = true
			}
		}
	}
	for _, upload := range out.Uploads {
		if !noted[*upload.UploadId] {
			w.t.Errorf("an upload of %s was left open, no checkpoint names it", *upload.Key)
		}
	}
	if len(noted) > len(out.Uploads) {
		w.t.Errorf("%d checkpoints name %d uploads", len(noted), len(out.Uploads))
	}
}

// noted is what a test reads of a checkpoint.
type noted struct {
	Path   string
	Upload string `json:"upload_id"`
	Parts  int
	// Checksum is of a receipt, which outlives its upload.
	Checksum string
}

func (w *world) checkpoint(key string) noted {
	w.t.Helper()
	var found noted
	if err := json.Unmarshal(w.read(key), &found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestSync(t *testing.T) {
	w := newWorld(t, nil)
	result := w.mustRun()
	if diff := cmp.Diff(len(w.hub.Entries(repo, "main")), result.Uploaded.Files); diff != "" {
		t.Errorf("uploaded files (-want +got):\n%s", diff)
	}
	if result.DownloadedBytes != result.Total.Bytes || result.Uploaded.Bytes != result.Total.Bytes {
		t.Errorf("downloaded %d, uploaded %d of %d bytes", result.DownloadedBytes, result.Uploaded.Bytes, result.Total.Bytes)
	}
	manifest := w.manifest()
	if !manifest.CompleteRepo || manifest.RequestedRevision != "main" || manifest.Tool.Version != "test" {
		t.Errorf("manifest: %+v", manifest)
	}
	if diff := cmp.Diff(record.StoreCapabilities{RefusesWrongSHA256: true, ConditionalPut: true, ReturnsSHA256: true, RefusesWrongPart: true, ListsPartSHA256: true}, manifest.StoreCapabilities); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	for _, file := range manifest.Files {
		if file.Size > 16<<20 && (file.S3.Parts != 2 || file.S3.PartSize != 16<<20 || file.S3.ChecksumType != "COMPOSITE") {
			t.Errorf("%s: %+v", file.Path, file.S3)
		}
		if file.Path == "src/__init__.py" && (file.Size != 0 || file.SHA256 != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") {
			t.Errorf("the empty file (kserve skips it): %+v", file)
		}
	}
}

func TestSecondRunReadsNothing(t *testing.T) {
	w := newWorld(t, nil)
	first := w.mustRun()
	w.hub.ResetStats()
	second := w.mustRun()
	if stats := w.hub.Stats(); !second.AlreadyComplete || stats.FileBytes != 0 || stats.ResolveRequests != 0 || second.DownloadedBytes != 0 {
		t.Errorf("complete %v, stats %+v", second.AlreadyComplete, stats)
	}
	if second.ManifestSHA256 != first.ManifestSHA256 {
		t.Error("the manifest changed")
	}
}

// replace overwrites an object in one piece.
func (w *world) replace(key string, data []byte, metadata map[string]string) {
	w.t.Helper()
	if _, err := w.store.Client().PutObject(w.t.Context(), &s3.PutObjectInput{Bucket: new(bucket), Key: &key, Body: bytes.NewReader(data), Metadata: metadata}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) served(path string) hub.Entry {
	w.t.Helper()
	for _, entry := range w.hub.Entries(repo, "main") {
		if entry.Path == path {
			return entry
		}
	}
	w.t.Fatalf("the Hub does not serve %s", path)
	return hub.Entry{}
}
