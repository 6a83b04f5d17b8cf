package store_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/store"
	"github.com/kubectl-inference/kubectl-inference/test/s3server"
)

// A front of the store rewrites Accept-Encoding and drops the SDK's own headers,
// as Google's and others do (aws-sdk-go-v2#1816, litestream#1386,
// iceberg-go#1423). The signature holds, and the request still asks for no gzip.
func TestHeadersRewrittenOnTheWay(t *testing.T) {
	server := s3server.Start(t)
	server.Bucket(t, "models")
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(map[string]int)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		asked[r.In.Header.Get("Accept-Encoding")]++
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Accept-Encoding", "gzip,gfe")
		r.Out.Header.Del("Amz-Sdk-Request")
		r.Out.Header.Set("Amz-Sdk-Invocation-Id", "another")
	}}
	front := httptest.NewServer(http.HandlerFunc(proxy.ServeHTTP))
	defer front.Close()
	bucket, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: front.URL, Credentials: server.Credentials(), Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Put(t.Context(), "a", []byte("data"), store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, bucket, "a", 0, -1)); got != "data" {
		t.Errorf("read %q", got)
	}
	if asked["gzip"] > 0 || asked["identity"] == 0 {
		t.Errorf("asked for %v", asked)
	}
}

// Each wait for an absent store is told, with what is wrong.
func TestRetriesAreTold(t *testing.T) {
	var told []store.Retry
	_, err := store.Open(t.Context(), store.Config{
		Bucket: "models", Endpoint: "http://127.0.0.1:1", Credentials: keys("a", "b"), Attempts: 3,
		OnRetry: func(retry store.Retry) { told = append(told, retry) },
	})
	if store.CauseOf(err) != store.Unreachable || len(told) != 2 {
		t.Fatalf("%d retries, %v", len(told), err)
	}
	if last := told[1]; last.Attempt != 2 || last.Attempts != 3 || last.Status() != 0 || !strings.Contains(last.Err.Error(), "cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused") {
		t.Errorf("told %+v: %v", last, last.Err)
	}
}

// The KMS key goes with the start of an upload too, where S3 asks for it
// (mountpoint-s3-csi-driver#194).
func TestUploadSendsTheKMSKey(t *testing.T) {
	var seen http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("uploads") {
			seen = r.Header
			w.Write([]byte("<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"))
		}
	}))
	defer server.Close()
	bucket, err := store.Open(t.Context(), store.Config{Bucket: "models", Endpoint: server.URL, Credentials: keys("a", "b"), Attempts: 1, KMSKey: "key-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.CreateUpload(t.Context(), "k", store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if seen.Get("X-Amz-Server-Side-Encryption") != "aws:kms" || seen.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id") != "key-1" {
		t.Errorf("headers: %v", seen)
	}
}
