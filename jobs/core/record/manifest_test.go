package record

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func sample() Manifest {
	return Manifest{
		ModelID: "lab/tiny", Revision: strings.Repeat("a", 40), RequestedRevision: "main",
		UploadedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		Files: []ManifestFile{
			{Path: "sub/z.bin", Size: 1, SHA256: digest("z"), SourceDigest: &SourceDigest{DigestSHA256, digest("z")},
				S3: &ManifestObject{ETag: `"e"`, PartSize: 16 << 20, Parts: 1, ChecksumSHA256: "x-1", ChecksumType: "COMPOSITE"}},
			{Path: "sub.txt", Size: 2, SHA256: digest("s")},
			{Path: ".gitattributes", Size: 3, SHA256: digest("g")},
		},
		Include: []string{}, Exclude: []string{}, Skipped: []ManifestSkipped{},
	}
}

func TestManifestRoundTrip(t *testing.T) {
	manifest := sample()
	if err := manifest.Seal(); err != nil {
		t.Fatal(err)
	}
	if manifest.FileCount != 3 || manifest.TotalSize != 6 || !manifest.CompleteRepo {
		t.Errorf("Seal: got %d files, %d bytes, complete %v", manifest.FileCount, manifest.TotalSize, manifest.CompleteRepo)
	}
	data, err := Encode(manifest)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest, again); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
	for _, key := range []string{"schema_version", "model_id", "revision", "uploaded_at", "file_count", "total_size", "files"} {
		if !strings.Contains(string(data), `"`+key+`"`) {
			t.Errorf("the seed's field %s is missing", key)
		}
	}
}

// The root digest is what an OpenSSF model signature signs: the raw digests in
// path order, the top level's git files left out.
func TestRootDigest(t *testing.T) {
	raw := func(content string) string { sum := sha256.Sum256([]byte(content)); return string(sum[:]) }
	got, err := RootDigest(sample().Files)
	if err != nil {
		t.Fatal(err)
	}
	if want := digest(raw("s") + raw("z")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	files := []ManifestFile{{Path: "a/.gitignore", SHA256: digest("a")}, {Path: ".github/x", SHA256: digest("b")}}
	got, err = RootDigest(files)
	if err != nil {
		t.Fatal(err)
	}
	if want := digest(raw("a")); got != want {
		t.Errorf("below the top level: got %s, want %s", got, want)
	}
	if _, err := RootDigest([]ManifestFile{{Path: "a", SHA256: "abc"}}); err == nil {
		t.Error("a short digest was accepted")
	}
}

func TestParseManifestRefuses(t *testing.T) {
	const head = `"model_id":"o/n","revision":"r","uploaded_at":"2026-01-02T03:04:05.123456+00:00"`
	file := func(path string) string { return `{"path":"` + path + `","size":1,"sha256":"` + digest("x") + `"}` }
	tests := map[string]struct {
		data string
		want string
		kind failure.Kind
	}{
		"not json":        {data: `<html>`, want: "not a JSON document", kind: failure.Failed},
		"newer version":   {data: `{"schema_version":3}`, want: "schema_version 3 is not known", kind: failure.Usage},
		"no version":      {data: `{}`, want: "no schema_version", kind: failure.Failed},
		"no model":        {data: `{"schema_version":1}`, want: "no model and revision", kind: failure.Failed},
		"count":           {data: `{"schema_version":1,` + head + `,"file_count":2,"total_size":1,"files":[` + file("a") + `]}`, want: "promises 2 files", kind: failure.Failed},
		"size":            {data: `{"schema_version":1,` + head + `,"file_count":1,"total_size":7,"files":[` + file("a") + `]}`, want: "7 bytes", kind: failure.Failed},
		"twice":           {data: `{"schema_version":1,` + head + `,"file_count":2,"total_size":2,"files":[` + file("a") + `,` + file("a") + `]}`, want: "listed twice", kind: failure.Failed},
		"bad digest":      {data: `{"schema_version":1,` + head + `,"file_count":1,"total_size":1,"files":[{"path":"a","size":1,"sha256":"00"}]}`, want: "no valid size and SHA-256", kind: failure.Failed},
		"root digest":     {data: `{"schema_version":2,` + head + `,"file_count":1,"total_size":1,"files":[` + file("a") + `],"root_digest":"00"}`, want: "does not follow", kind: failure.Failed},
		"seed is read":    {data: `{"schema_version":1,` + head + `,"file_count":1,"total_size":1,"files":[` + file("a") + `]}`},
		"seed path order": {data: `{"schema_version":1,` + head + `,"file_count":2,"total_size":2,"files":[` + file("a/b") + `,` + file("a.txt") + `]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseManifest([]byte(test.data))
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || failure.KindOf(err) != test.kind {
				t.Errorf("got %v (kind %d), want %q (kind %d)", err, failure.KindOf(err), test.want, test.kind)
			}
		})
	}
}
