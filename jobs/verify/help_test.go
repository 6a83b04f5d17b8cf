package verify_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

func hexOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func problems(path, kind, expected, found string) []record.ModelProblem {
	return []record.ModelProblem{{Path: path, Kind: kind, Expected: expected, Found: found}}
}

func line(t *testing.T, manifest record.Manifest, name string) record.ManifestFile {
	t.Helper()
	for _, file := range manifest.Files {
		if file.Path == name {
			return file
		}
	}
	t.Fatalf("%s is not in the manifest", name)
	return record.ManifestFile{}
}

func (w *world) read(name string) []byte {
	w.t.Helper()
	out, err := w.store.Client().GetObject(w.t.Context(), &s3.GetObjectInput{Bucket: new("models"), Key: new(w.key(name))})
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

// restore writes an object again as the sync did, in the same parts.
func (w *world) restore(name string, data []byte, file record.ManifestFile) {
	w.t.Helper()
	options := store.PutOptions{Metadata: map[string]string{"sha256": file.SHA256}}
	if file.SourceDigest != nil && file.SourceDigest.Algorithm == record.DigestGitSHA1 {
		options.Metadata["git-sha1"] = file.SourceDigest.Value
	}
	if file.S3.PartSize == 0 {
		if _, err := w.bucket.Put(w.t.Context(), w.key(name), data, options); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	upload, err := w.bucket.CreateUpload(w.t.Context(), w.key(name), options)
	if err != nil {
		w.t.Fatal(err)
	}
	for number := 1; len(data) > 0; number++ {
		part := data[:min(int64(len(data)), file.S3.PartSize)]
		if err := upload.Part(w.t.Context(), number, part); err != nil {
			w.t.Fatal(err)
		}
		data = data[len(part):]
	}
	if _, err := upload.Complete(w.t.Context(), file.Size, false); err != nil {
		w.t.Fatal(err)
	}
}
