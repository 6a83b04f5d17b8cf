package sync_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	gosync "sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/hub"
)

func (w *world) remove(key string) {
	w.t.Helper()
	if _, err := w.store.Client().DeleteObject(w.t.Context(), &s3.DeleteObjectInput{Bucket: new(bucket), Key: &key}); err != nil {
		w.t.Fatal(err)
	}
}

// parts writes an object in two parts, as another tool would.
func (w *world) parts(key string, data []byte, first int, metadata map[string]string) {
	w.t.Helper()
	client, ctx := w.store.Client(), w.t.Context()
	begun, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: new(bucket), Key: &key, Metadata: metadata, ChecksumAlgorithm: types.ChecksumAlgorithmSha256})
	if err != nil {
		w.t.Fatal(err)
	}
	var done []types.CompletedPart
	for i, body := range [][]byte{data[:first], data[first:]} {
		number := int32(i + 1)
		out, err := client.UploadPart(ctx, &s3.UploadPartInput{Bucket: new(bucket), Key: &key, UploadId: begun.UploadId, PartNumber: &number, Body: bytes.NewReader(body), ChecksumAlgorithm: types.ChecksumAlgorithmSha256})
		if err != nil {
			w.t.Fatal(err)
		}
		done = append(done, types.CompletedPart{ETag: out.ETag, PartNumber: &number, ChecksumSHA256: out.ChecksumSHA256})
	}
	if _, err := client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: new(bucket), Key: &key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done}}); err != nil {
		w.t.Fatal(err)
	}
}

// During a run that heals one shard another program deletes a file that was
// right before, and overwrites a second one: neither the manifest nor the
// success may be false.
func TestChangedDuringTheRun(t *testing.T) {
	before := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, shard) && r.Method == http.MethodPost }
	afterManifest := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, record.ManifestName) && r.Method == http.MethodPut
	}
	for name, when := range map[string]func(*http.Request) bool{"while a shard is written": before, "right when the manifest is written": afterManifest} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.mustRun()
			w.remove(w.prefix() + "/" + shard)
			var once gosync.Once
			w.deps.StoreTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
				response, err := http.DefaultTransport.RoundTrip(r)
				if when(r) {
					once.Do(func() {
						w.remove(w.prefix() + "/config.json")
						w.replace(w.prefix()+"/tokenizer.json", bytes.Repeat([]byte("x"), int(w.served("tokenizer.json").Size)), nil)
					})
				}
				return response, err
			})
			result := w.mustRun()
			if result.Uploaded.Files != 3 || result.Present.Files != result.Total.Files-3 {
				t.Errorf("uploaded %+v, present %+v of %+v", result.Uploaded, result.Present, result.Total)
			}
		})
	}
}

// An object of parts with the right size and metadata and one wrong byte is not
// the file, whoever wrote it; one with right bytes in another cut is, once it
// was read.
func TestPartsOfAnotherTool(t *testing.T) {
	for name, wrong := range map[string]bool{"one wrong byte": true, "right bytes": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.mustRun()
			data, sum := w.read(w.prefix()+"/"+shard), w.served(shard).SHA256
			w.remove(w.prefix() + "/" + record.ManifestName)
			if wrong {
				data[5000] ^= 1
			}
			w.parts(w.prefix()+"/"+shard, data, 6*mebibyte, map[string]string{"sha256": sum})
			w.hub.ResetStats()
			result := w.mustRun()
			if got := result.Uploaded.Files; (got == 1) != wrong || (result.DownloadedBytes == w.served(shard).Size) != wrong {
				t.Errorf("uploaded %d, downloaded %d", got, result.DownloadedBytes)
			}
			if !w.said(sync.EventReread, shard) {
				t.Error("the object was not read")
			}
		})
	}
}

// What an interrupted run completed is known by its receipts, and neither read
// in the store nor of the Hub.
func TestReceipts(t *testing.T) {
	w := newWorld(t, nil)
	w.hub.Inject(hub.Fault{Kind: hub.FaultStatus, Status: 503, Path: "model-00002-of-00002.safetensors"})
	w.plan.Parallel = 1
	if _, err := w.run(); err == nil {
		t.Fatal("the fault did not end the run")
	}
	w.hub.Clear()
	result := w.mustRun()
	if w.said(sync.EventReread, "") || result.Present.Bytes < w.served(shard).Size {
		t.Errorf("a completed shard was read again: present %+v", result.Present)
	}
}

// A store that claims in a manifest to know no checksums is not believed: the
// objects of a store that has them must have one.
func TestCapabilitiesAreProbed(t *testing.T) {
	w := newWorld(t, nil)
	w.mustRun()
	manifest := w.manifest()
	manifest.StoreCapabilities = record.StoreCapabilities{}
	data, err := record.Encode(manifest)
	if err != nil {
		t.Fatal(err)
	}
	w.replace(w.prefix()+"/"+record.ManifestName, data, nil)
	w.remove(w.prefix() + "/" + shard)
	w.mustRun()
	if !w.manifest().StoreCapabilities.ConditionalPut {
		t.Error("the false capabilities were taken over")
	}
}

// TestRecheck: a byte that changed on the store's disk, without a trace in its
// attributes, is found and healed.
func TestRecheck(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.Models[0].Bytes = 1 << 20 })
	w.mustRun()
	path := filepath.Join(w.store.Data, bucket, w.prefix(), shard)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{^w.read(w.prefix() + "/" + shard)[5000]}, 5000); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if result, err := w.run(); err != nil || !result.AlreadyComplete {
		t.Fatalf("the attributes tell: %v", err)
	}
	w.plan.Recheck = true
	if result := w.mustRun(); result.AlreadyComplete || result.Uploaded.Files != 1 {
		t.Errorf("result: %+v", result)
	}
	if result := w.mustRun(); !result.AlreadyComplete {
		t.Errorf("not complete after the healing: %+v", result.Uploaded)
	}
}
