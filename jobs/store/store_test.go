package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

func open(t *testing.T) (*store.Bucket, *s3server.Server) {
	t.Helper()
	server := s3server.Start(t)
	bucket, err := store.Open(t.Context(), store.Config{Bucket: server.Bucket(t, "models"), Endpoint: server.URL, Credentials: server.Credentials(), Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	return bucket, server
}

func hexOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func read(t *testing.T, bucket *store.Bucket, key string, offset, length int64) []byte {
	t.Helper()
	body, err := bucket.Get(t.Context(), key, offset, length)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestObjects(t *testing.T) {
	bucket, _ := open(t)
	for _, key := range []string{"a/plain", "a/with space+%ü", "a/empty"} {
		data := []byte(key)
		if strings.HasSuffix(key, "empty") {
			data = nil
		}
		if _, err := bucket.Put(t.Context(), key, data, store.PutOptions{Metadata: map[string]string{"sha256": "x"}, ContentType: "text/plain"}); err != nil {
			t.Fatal(err)
		}
		object, err := bucket.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if object.Size != int64(len(data)) || object.SHA256() != hexOf(data) || object.Metadata["sha256"] != "x" {
			t.Errorf("%s: %+v", key, object)
		}
		if got := read(t, bucket, key, 0, -1); !bytes.Equal(got, data) {
			t.Errorf("%s: read %q", key, got)
		}
	}
	if got := read(t, bucket, "a/plain", 2, 3); string(got) != "pla" {
		t.Errorf("range: read %q", got)
	}
	if got := read(t, bucket, "a/plain", 2, -1); string(got) != "plain" {
		t.Errorf("from offset: read %q", got)
	}
	var keys []string
	for object, err := range bucket.List(t.Context(), "a/") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, object.Key)
	}
	if diff := cmp.Diff([]string{"a/empty", "a/plain", "a/with space+%ü"}, keys); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if err := bucket.Delete(t.Context(), "a/plain"); err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Head(t.Context(), "a/plain"); store.CauseOf(err) != store.NoObject {
		t.Errorf("after delete: %v", err)
	}
	if err := bucket.Delete(t.Context(), "a/plain"); err != nil {
		t.Errorf("a second delete: %v", err)
	}
}

func TestPutConditions(t *testing.T) {
	bucket, _ := open(t)
	data := []byte("data")
	if _, err := bucket.Put(t.Context(), "k", data, store.PutOptions{SHA256: hexOf([]byte("other"))}); store.CauseOf(err) != store.Mismatch {
		t.Errorf("a wrong SHA-256: %v", err)
	}
	if _, err := bucket.Put(t.Context(), "k", data, store.PutOptions{IfAbsent: true, SHA256: hexOf(data)}); err != nil {
		t.Errorf("the first write: %v", err)
	}
	if _, err := bucket.Put(t.Context(), "k", data, store.PutOptions{IfAbsent: true}); store.CauseOf(err) != store.Condition {
		t.Errorf("the second write: %v", err)
	}
	if _, err := bucket.Put(t.Context(), "k", data, store.PutOptions{SHA256: "no hex"}); err == nil {
		t.Error("a digest that is none was accepted")
	}
}

func TestUpload(t *testing.T) {
	bucket, server := open(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 700_000) // 11.2 MB
	const size = 5 << 20
	upload, err := bucket.CreateUpload(t.Context(), "big", store.PutOptions{Metadata: map[string]string{"sha256": hexOf(data)}})
	if err != nil {
		t.Fatal(err)
	}
	// In any order.
	for _, number := range []int{3, 1, 2} {
		part := data[(number-1)*size : min(number*size, len(data))]
		if err := upload.Part(t.Context(), number, part); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bucket.Head(t.Context(), "big"); store.CauseOf(err) != store.NoObject {
		t.Errorf("before Complete: %v", err)
	}
	if _, err := upload.Complete(t.Context(), int64(len(data))-1, false); err == nil {
		t.Error("completed with another size")
	}
	if _, err := upload.Complete(t.Context(), int64(len(data)), true); err != nil {
		t.Fatal(err)
	}
	object, err := bucket.Head(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]byte, 0, 96)
	for number := range 3 {
		sum := sha256.Sum256(data[number*size : min((number+1)*size, len(data))])
		sums = append(sums, sum[:]...)
	}
	// The composite checksum is the SHA-256 over the parts' digests.
	whole := sha256.Sum256(sums)
	if object.ChecksumType != "COMPOSITE" || object.ChecksumSHA256 != base64.StdEncoding.EncodeToString(whole[:])+"-3" || object.SHA256() != "" || object.Metadata["sha256"] != hexOf(data) {
		t.Errorf("object: %+v", object)
	}
	if !bytes.Equal(read(t, bucket, "big", 0, -1), data) {
		t.Error("the object has other bytes")
	}
	second, err := bucket.CreateUpload(t.Context(), "big", store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Part(t.Context(), 1, data[:size]); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Complete(t.Context(), size, true); store.CauseOf(err) != store.Condition {
		t.Errorf("complete over an object: %v", err)
	}
	if server.OpenUploads(t, "models") != 1 {
		t.Error("a refused Complete keeps the upload open, as on AWS")
	}
	// The work was cancelled: that is when the parts have to go.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Abort(ctx); err != nil {
		t.Errorf("abort: %v", err)
	}
	if server.OpenUploads(t, "models") != 0 {
		t.Error("the upload is still open")
	}
	if err := second.Abort(t.Context()); err != nil {
		t.Errorf("a second abort: %v", err)
	}
}

func TestOpenUploads(t *testing.T) {
	bucket, _ := open(t)
	for _, key := range []string{"a/x", "b/y"} {
		if _, err := bucket.CreateUpload(t.Context(), key, store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	uploads, err := bucket.OpenUploads(t.Context(), "a/")
	if err != nil || len(uploads) != 1 || uploads[0].Key != "a/x" || uploads[0].Initiated.IsZero() {
		t.Fatalf("got %+v, %v", uploads, err)
	}
	if err := bucket.AbortUpload(t.Context(), uploads[0]); err != nil {
		t.Fatal(err)
	}
	if uploads, err = bucket.OpenUploads(t.Context(), "a/"); err != nil || len(uploads) != 0 {
		t.Errorf("after abort: %+v, %v", uploads, err)
	}
}

func TestProbe(t *testing.T) {
	bucket, server := open(t)
	can, err := bucket.Probe(t.Context(), "llm", "u1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.StoreCapabilities{RefusesWrongSHA256: true, ConditionalPut: true, ReturnsSHA256: true, RefusesWrongPart: true, ListsPartSHA256: true}, can); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	if keys := server.Keys(t, "models"); len(keys) != 0 {
		t.Errorf("the probe left %v", keys)
	}
}

// A store without checksums and conditions, as some S3 servers are: the probe
// finds out, and does not fail.
func TestProbeOfAWeakStore(t *testing.T) {
	objects := make(map[string][]byte)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, found := objects[r.URL.Path]
		switch {
		case r.URL.Path == "/models":
		case r.Method == http.MethodPut:
			objects[r.URL.Path], _ = io.ReadAll(r.Body)
		case r.Method == http.MethodDelete:
			delete(objects, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		case !found:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Write(data)
		}
	}))
	defer server.Close()
	bucket, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: server.URL, Credentials: keys("a", "b"), Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	can, err := bucket.Probe(t.Context(), "", "u1")
	if err != nil || can != (record.StoreCapabilities{}) {
		t.Errorf("got %+v, %v", can, err)
	}
	if len(objects) != 0 {
		t.Errorf("the probe left %d objects", len(objects))
	}
}

func keys(access, secret string) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(access, secret, "")
}

func TestOpenSaysWhy(t *testing.T) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer forbidden.Close()
	tests := map[string]struct {
		config store.Config
		cause  store.Cause
		text   string
	}{
		"no bucket":    {config: store.Config{Bucket: "other", Endpoint: server.URL, Credentials: server.Credentials()}, cause: store.NoBucket, text: "open s3://other: the bucket does not exist"},
		"denied":       {config: store.Config{Bucket: "models", Endpoint: forbidden.URL, Credentials: server.Credentials()}, cause: store.Denied, text: "open s3://models: access denied, it needs s3:ListBucket"},
		"wrong key":    {config: store.Config{Bucket: "models", Endpoint: server.URL, Credentials: keys("nobody", "x")}, cause: store.BadCredentials, text: "does not accept the credentials"},
		"wrong secret": {config: store.Config{Bucket: "models", Endpoint: server.URL, Credentials: keys(s3server.AccessKey, "x")}, cause: store.BadCredentials, text: "(SignatureDoesNotMatch)"},
		"unreachable":  {config: store.Config{Bucket: "models", Endpoint: "http://127.0.0.1:1", Credentials: server.Credentials()}, cause: store.Unreachable, text: "connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.config.Attempts = 1
			_, err := store.Open(t.Context(), test.config)
			if store.CauseOf(err) != test.cause || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v (cause %d), want %q", err, store.CauseOf(err), test.text)
			}
		})
	}
	bucket, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: server.URL, Credentials: server.Credentials(), Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Get(t.Context(), "absent", 0, -1); store.CauseOf(err) != store.NoObject {
		t.Errorf("get of an absent key: %v", err)
	}
}

// On the wire to a server that is not AWS there is no trailing checksum and no
// aws-chunked framing (rqlite#2701, seaweedfs#7623), not over TLS either, where
// the SDK frames the checksums that it computes (loki#21791); the body's own SHA-256 is
// the signed payload hash, and addresses are path style.
func TestWireForm(t *testing.T) {
	t.Run("plain", func(t *testing.T) { wireForm(t, httptest.NewServer) })
	t.Run("TLS", func(t *testing.T) { wireForm(t, httptest.NewTLSServer) })
}

func wireForm(t *testing.T, start func(http.Handler) *httptest.Server) {
	var seen []*http.Request
	server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		seen = append(seen, r)
		if r.Method == http.MethodPost {
			io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
		}
	}))
	defer server.Close()
	bucket, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: server.URL, Credentials: keys("a", "b"), Attempts: 1, KMSKey: "key-1", Transport: server.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Put(t.Context(), "k", []byte("data"), store.PutOptions{IfAbsent: true}); err != nil {
		t.Fatal(err)
	}
	put := seen[len(seen)-1]
	for name, want := range map[string]string{
		"X-Amz-Content-Sha256":                        hexOf([]byte("data")),
		"If-None-Match":                               "*",
		"X-Amz-Trailer":                               "",
		"Content-Encoding":                            "",
		"X-Amz-Checksum-Crc32":                        "",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key-1",
	} {
		if got := put.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	sum := sha256.Sum256([]byte("data"))
	want := base64.StdEncoding.EncodeToString(sum[:])
	if put.Header.Get("X-Amz-Checksum-Sha256") != want || put.URL.Path != "/models/k" || slices.Contains(put.TransferEncoding, "chunked") {
		t.Errorf("request: %s %v %v", put.URL, put.Header, put.TransferEncoding)
	}
	upload, err := bucket.CreateUpload(t.Context(), "k", store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := upload.Part(t.Context(), 1, []byte("data")); err != nil {
		t.Fatal(err)
	}
	part := seen[len(seen)-1].Header
	if part.Get("X-Amz-Checksum-Sha256") != want || part.Get("X-Amz-Content-Sha256") != hexOf([]byte("data")) || part.Get("X-Amz-Trailer") != "" || part.Get("Content-Encoding") != "" {
		t.Errorf("part: %v", part)
	}
}

func TestPartSize(t *testing.T) {
	const mebibyte = 1 << 20
	for size, want := range map[int64]int64{
		0: 16 * mebibyte, 1 << 30: 16 * mebibyte, 160_000 * mebibyte: 16 * mebibyte, 160_000*mebibyte + 1: 17 * mebibyte, 5 << 40: 525 * mebibyte,
	} {
		got := store.PartSize(size)
		if got != want || (size+got-1)/got > 10_000 {
			t.Errorf("%d bytes: got %d, want %d", size, got, want)
		}
	}
}
