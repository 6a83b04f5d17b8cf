package weights_test

import (
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/weights"
)

// bucket is the part of S3 that a reader needs, path style: ListObjectsV2 in pages of two, and GetObject.
type bucket map[string]string

func (b bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
		http.Error(w, `<Error><Code>AccessDenied</Code></Error>`, http.StatusForbidden)
		return
	}
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if name != "bucket" {
		http.Error(w, `<Error><Code>NoSuchBucket</Code></Error>`, http.StatusNotFound)
		return
	}
	if key == "" {
		b.list(w, r)
		return
	}
	content, ok := b[key]
	if !ok {
		http.Error(w, `<Error><Code>NoSuchKey</Code></Error>`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write([]byte(content))
}

func (b bucket) list(w http.ResponseWriter, r *http.Request) {
	type object struct {
		Key  string
		Size int
	}
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Contents              []object
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
	}
	var keys []string
	for key := range b {
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	first, _ := strconv.Atoi(r.URL.Query().Get("continuation-token"))
	for i := first; i < len(keys) && i < first+2; i++ {
		page.Contents = append(page.Contents, object{keys[i], len(b[keys[i]])})
	}
	if page.IsTruncated = first+2 < len(keys); page.IsTruncated {
		page.NextContinuationToken = strconv.Itoa(first + 2)
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(page)
}

// s3 serves a bucket and points the environment at it.
func s3(t *testing.T, b bucket) {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv("AWS_CONFIG_FILE", "absent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "absent")
}

func TestLoadFromS3(t *testing.T) {
	for name, test := range cases() {
		t.Run(name, func(t *testing.T) {
			files := whole()
			test.change(files)
			// A neighbour whose prefix begins alike, and the mark of a folder, are not part of the model.
			b := bucket{"models/x-other/model.safetensors": "broken", "models/x/": ""}
			for name, content := range files {
				b["models/x/"+name] = content
			}
			s3(t, b)
			src, err := weights.Open(t.Context(), "s3://bucket/models/x")
			if err != nil {
				t.Fatal(err)
			}
			m, err := weights.Load(t.Context(), src, nil)
			check(t, m, err, test.want)
		})
	}
}

func TestS3Errors(t *testing.T) {
	for location, want := range map[string]string{
		"s3://bucket/nothing": "list s3://bucket/nothing/: no object has this prefix",
		"s3://other/models/x": "list s3://other/models/x/: ",
	} {
		t.Run(location, func(t *testing.T) {
			s3(t, bucket{})
			src, err := weights.Open(t.Context(), location)
			if err != nil {
				t.Fatal(err)
			}
			_, err = weights.Load(t.Context(), src, nil)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}
