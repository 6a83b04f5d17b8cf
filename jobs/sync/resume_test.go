package sync_test

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

const (
	mebibyte = 1 << 20
	partSize = 16 * mebibyte
	weights  = "model.safetensors"
)

// tap counts the parts that reach the store, and can break the line.
type tap struct {
	mu   gosync.Mutex
	sent []int
	// at is called before a part is sent; an error is that of the connection.
	at func(part int) error
	// dead fails every request from the moment it is set.
	dead bool
}

func (t *tap) RoundTrip(request *http.Request) (*http.Response, error) {
	t.mu.Lock()
	dead, at := t.dead, t.at
	t.mu.Unlock()
	if dead {
		return nil, errors.New("network is unreachable")
	}
	part, err := strconv.Atoi(request.URL.Query().Get("partNumber"))
	if err != nil || request.Method != http.MethodPut || !strings.HasSuffix(request.URL.Path, weights) {
		return http.DefaultTransport.RoundTrip(request)
	}
	if at != nil {
		if err := at(part); err != nil {
			return nil, err
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		t.mu.Lock()
		t.sent = append(t.sent, part)
		t.mu.Unlock()
	}
	return response, err
}

// parts are the numbers of the parts sent, in order of size.
func (t *tap) parts() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.sent))
}

// settle waits until that many parts were sent and the sender knows it.
func (t *tap) settle(parts int) {
	for end := time.Now().Add(10 * time.Second); len(t.parts()) < parts && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
}

// kill breaks the line to the store for good.
func (t *tap) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = true
}

// interrupted runs a sync of one file of four parts that ends before the third:
// by a signal, or as one that is killed ends, with no time for anything. It
// returns a world in which the next run is not disturbed.
func interrupted(t *testing.T, killed bool, every time.Duration, change func(*hub.Options)) (*world, *tap) {
	t.Helper()
	w := newWorld(t, func(o *hub.Options) {
		o.Models[0].Bytes, o.Models[0].Shards = 4*partSize-mebibyte, 1
		if change != nil {
			change(o)
		}
	})
	line := &tap{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line.at = func(part int) error {
		if part < 3 {
			return nil
		}
		line.settle(2)
		if killed {
			line.kill()
		}
		cancel()
		return errors.New("connection reset by peer")
	}
	w.plan.Parallel, w.deps.StoreTransport, w.deps.CheckpointEvery = 4, line, every
	if _, err := sync.Run(ctx, w.plan, w.deps); !errors.Is(err, context.Canceled) {
		t.Fatalf("the run was not interrupted: %v", err)
	}
	if diff := cmp.Diff([]int{1, 2}, line.parts()); diff != "" {
		t.Fatalf("parts sent (-want +got):\n%s", diff)
	}
	w.hub.ResetStats()
	again := &tap{}
	w.deps.StoreTransport = again
	return w, again
}

// A stopped pod's successor sends and reads only what was not done. So does one
// of a pod that was killed, from its last checkpoint; parts behind that one are
// read again and not sent again.
func TestResume(t *testing.T) {
	tests := map[string]struct {
		killed bool
		every  time.Duration
		// from is the offset at which the second run begins to read.
		from int64
	}{
		"stopped":                    {every: time.Hour, from: 2 * partSize},
		"killed":                     {killed: true, every: time.Nanosecond, from: 2 * partSize},
		"killed before a checkpoint": {killed: true, every: time.Hour, from: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, line := interrupted(t, test.killed, test.every, nil)
			w.checkUploads()
			result := w.mustRun()
			size := w.served(weights).Size
			if got := w.hub.Stats().BytesByPath[weights]; got != size-test.from || result.ResumedBytes != test.from {
				t.Errorf("read %d bytes and resumed at %d, want %d", got, result.ResumedBytes, test.from)
			}
			if diff := cmp.Diff([]int{3, 4}, line.parts()); diff != "" {
				t.Errorf("parts sent (-want +got):\n%s", diff)
			}
			if test.from > 0 && !w.said(sync.EventResume, weights+" goes on at 32 MiB") {
				t.Error("no event tells of it")
			}
		})
	}
}

// said tells whether an event of the name has the text in its message.
func (w *world) said(name, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.events, func(e record.Event) bool { return e.Name == name && strings.Contains(e.Message, text) })
}

// A large git file, whose SHA-256 the Hub does not state, goes on too.
func TestResumeOfAGitFile(t *testing.T) {
	w, line := interrupted(t, false, time.Hour, func(o *hub.Options) { o.Models[0].Git = []string{weights} })
	w.mustRun()
	if diff := cmp.Diff([]int{3, 4}, line.parts()); diff != "" {
		t.Errorf("parts sent (-want +got):\n%s", diff)
	}
}

// Whatever a checkpoint says and the store holds, the object is the Hub's file,
// and nothing of an upload that is not used stays.
func TestResumeTrustsNothing(t *testing.T) {
	edit := func(change func(*sync.Checkpoint)) func(*world, string, []byte) []byte {
		return func(w *world, _ string, data []byte) []byte {
			var found sync.Checkpoint
			if err := json.Unmarshal(data, &found); err != nil {
				w.t.Fatal(err)
			}
			change(&found)
			return sync.Reseal(found)
		}
	}
	replacePart := func(number int32, data []byte) func(*world, string, []byte) []byte {
		return func(w *world, id string, checkpoint []byte) []byte {
			_, err := w.store.Client().UploadPart(w.t.Context(), &s3.UploadPartInput{
				Bucket: new(bucket), Key: new(w.prefix() + "/" + weights), UploadId: &id, PartNumber: &number,
				Body: strings.NewReader(string(data)), ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
			})
			if err != nil {
				w.t.Fatal(err)
			}
			return checkpoint
		}
	}
	wrongState, _ := sha256.New().(encoding.BinaryMarshaler).MarshalBinary()
	all := []int{1, 2, 3, 4}
	tests := map[string]struct {
		change func(w *world, upload string, checkpoint []byte) []byte
		sent   []int
	}{
		"another digest":           {change: edit(func(c *sync.Checkpoint) { c.Digest.Value = strings.Repeat("0", 64) }), sent: all},
		"another algorithm":        {change: edit(func(c *sync.Checkpoint) { c.Digest.Algorithm = record.DigestGitSHA1 }), sent: all},
		"no digest":                {change: edit(func(c *sync.Checkpoint) { c.Digest = nil }), sent: all},
		"another part size":        {change: edit(func(c *sync.Checkpoint) { c.PartSize = 8 * mebibyte }), sent: all},
		"another KMS key":          {change: edit(func(c *sync.Checkpoint) { c.KMSKey = "key-2" }), sent: all},
		"another path":             {change: edit(func(c *sync.Checkpoint) { c.Path = "other.safetensors" }), sent: all},
		"an upload that is gone":   {change: edit(func(c *sync.Checkpoint) { c.Upload = "00000000-0000-0000-0000-000000000000" }), sent: all},
		"other parts hashed":       {change: edit(func(c *sync.Checkpoint) { c.PartsSHA256 = strings.Repeat("0", 64) }), sent: []int{3, 4}},
		"more parts than there":    {change: edit(func(c *sync.Checkpoint) { c.Parts = 4 }), sent: []int{3, 4}},
		"more parts than the file": {change: edit(func(c *sync.Checkpoint) { c.Parts = 9999 }), sent: []int{3, 4}},
		"a state that is none":     {change: edit(func(c *sync.Checkpoint) { c.SHA256 = []byte("x") }), sent: []int{3, 4}},
		// Found out at the end, by the digest of the whole.
		"a state of other bytes": {change: edit(func(c *sync.Checkpoint) { c.SHA256 = wrongState }), sent: []int{1, 2, 3, 3, 4, 4}},
		"not the sum": {change: func(_ *world, _ string, data []byte) []byte {
			return []byte(strings.Replace(string(data), `"parts":2`, `"parts":1`, 1))
		}, sent: all},
		"not JSON":                  {change: func(*world, string, []byte) []byte { return []byte("<html>") }, sent: all},
		"empty":                     {change: func(*world, string, []byte) []byte { return nil }, sent: all},
		"a part replaced":           {change: replacePart(1, make([]byte, partSize)), sent: []int{1, 3, 4}},
		"a part replaced, shorter":  {change: replacePart(2, make([]byte, 5*mebibyte)), sent: []int{2, 3, 4}},
		"a foreign part at the end": {change: replacePart(4, make([]byte, partSize-mebibyte)), sent: []int{3, 4}},
		"a part beyond the end":     {change: replacePart(5, make([]byte, mebibyte)), sent: []int{3, 4}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, line := interrupted(t, false, time.Hour, nil)
			keys := slices.DeleteFunc(w.store.Keys(t, bucket), func(key string) bool { return !strings.Contains(key, "/"+record.CheckpointFolder) })
			if len(keys) != 1 {
				t.Fatalf("checkpoints: %v", keys)
			}
			w.replace(keys[0], test.change(w, w.checkpoint(keys[0]).Upload, w.read(keys[0])), nil)
			w.mustRun()
			if diff := cmp.Diff(test.sent, line.parts()); diff != "" {
				t.Errorf("parts sent (-want +got):\n%s", diff)
			}
		})
	}
}

// Wrong bytes that went into the hash before the interruption are found at the
// end, and the file is read anew (huggingface_hub#3643).
func TestResumeAfterWrongBytes(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes, o.Models[0].Shards = 3*partSize, 1 })
	w.hub.Inject(hub.Fault{Kind: hub.FaultCorrupt, Path: weights, After: mebibyte})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.plan.Parallel = 4
	line := &tap{}
	line.at = func(part int) error {
		if part < 3 {
			return nil
		}
		line.settle(2)
		cancel()
		return errors.New("connection reset by peer")
	}
	w.deps.StoreTransport = line
	if _, err := sync.Run(ctx, w.plan, w.deps); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.hub.Clear()
	line = &tap{}
	w.deps.StoreTransport = line
	w.mustRun()
	if diff := cmp.Diff([]int{1, 2, 3, 3, 4, 4}, line.parts()); diff != "" {
		t.Errorf("parts sent (-want +got):\n%s", diff)
	}
}

// What no later run gets past leaves nothing: neither parts nor checkpoints.
func TestPermanentFailureLeavesNothing(t *testing.T) {
	w, _ := interrupted(t, false, time.Hour, nil)
	if n := w.store.OpenUploads(t, bucket); n != 1 {
		t.Fatalf("%d uploads to give up", n)
	}
	// The access was taken away meanwhile.
	w.hub.Inject(hub.Fault{Kind: hub.FaultStatus, Status: 403, On: hub.OnResolve})
	_, err := w.run()
	w.checkFailed(err, failure.Denied, "may not read it")
	for _, key := range w.store.Keys(t, bucket) {
		if strings.Contains(key, record.CheckpointFolder) {
			t.Errorf("%s stayed", key)
		}
	}
	if n := w.store.OpenUploads(t, bucket); n != 0 {
		t.Errorf("%d uploads were left open", n)
	}
}

// An upload that a killed pod left behind is given up once the model is there.
// Those of other keys and of other tools are not touched.
func TestSweep(t *testing.T) {
	w := newWorld(t, nil)
	client := w.store.Client()
	create := func(key string, algorithm types.ChecksumAlgorithm, kind types.ChecksumType) {
		t.Helper()
		input := &s3.CreateMultipartUploadInput{Bucket: new(bucket), Key: &key, ChecksumAlgorithm: algorithm, ChecksumType: kind}
		if _, err := client.CreateMultipartUpload(t.Context(), input); err != nil {
			t.Fatal(err)
		}
	}
	large, other, small := w.prefix()+"/"+shard, "llm/unrelated", w.prefix()+"/config.json"
	create(large, types.ChecksumAlgorithmSha256, types.ChecksumTypeComposite)
	create(other, types.ChecksumAlgorithmSha256, types.ChecksumTypeComposite)
	// We put a small file in one piece.
	create(small, types.ChecksumAlgorithmSha256, types.ChecksumTypeComposite)
	// What other tools send by default.
	create(large, types.ChecksumAlgorithmCrc64nvme, types.ChecksumTypeFullObject)
	create(large, "", "")
	// The second run finds the prefix complete.
	for run := range 2 {
		if run == 1 {
			create(large, types.ChecksumAlgorithmSha256, types.ChecksumTypeComposite)
		}
		if _, err := w.run(); err != nil {
			t.Fatal(err)
		}
		out, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: new(bucket)})
		if err != nil {
			t.Fatal(err)
		}
		left := []string{}
		for _, upload := range out.Uploads {
			left = append(left, *upload.Key+" "+string(upload.ChecksumAlgorithm))
		}
		slices.Sort(left)
		want := []string{small + " SHA256", large + " ", large + " CRC64NVME", other + " SHA256"}
		slices.Sort(want)
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("run %d: open uploads (-want +got):\n%s", run, diff)
		}
	}
}
