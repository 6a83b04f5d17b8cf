package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/lab/image"
)

func sample() image.Image {
	return image.Image{
		Tags:         []string{"lab.test/engine:dev", "docker.io/vllm/vllm-openai:v0.25.1"},
		Program:      []byte("\x7fELF not really"),
		Name:         "engine",
		Architecture: "arm64",
	}
}

// TestArchive reads an archive the way an engine does: from manifest.json to
// the configuration and the layers, checking each digest on the way.
func TestArchive(t *testing.T) {
	var buf bytes.Buffer
	id, err := image.Write(&buf, sample())
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, buf.Bytes())

	var manifests []struct {
		Config           string
		RepoTags, Layers []string
	}
	decode(t, files["manifest.json"].data, &manifests)
	if len(manifests) != 1 {
		t.Fatalf("%d images in the archive, want 1", len(manifests))
	}
	m := manifests[0]
	if diff := cmp.Diff(sample().Tags, m.RepoTags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}

	var config struct {
		Architecture, OS string
		Config           struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	raw := files[m.Config].data
	if got := "sha256:" + digest(raw); got != id {
		t.Errorf("identity %s, configuration has digest %s", id, got)
	}
	decode(t, raw, &config)
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "65532:65532" {
		t.Errorf("configuration %+v", config)
	}
	if diff := cmp.Diff([]string{"/engine"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entrypoint (-want +got):\n%s", diff)
	}

	layer := files[m.Layers[0]].data
	if diff := cmp.Diff([]string{"sha256:" + digest(layer)}, config.RootFS.DiffIDs); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	type entry struct {
		Mode int64
		UID  int
	}
	got := map[string]entry{}
	for name, f := range untar(t, layer) {
		got[name] = entry{f.header.Mode, f.header.Uid}
	}
	want := map[string]entry{
		"etc/": {0o755, 0}, "etc/passwd": {0o644, 0}, "etc/group": {0o644, 0},
		"tmp/": {0o1777, image.User}, "engine": {0o755, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("root file system (-want +got):\n%s", diff)
	}
}

func TestSameImageSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	idA, errA := image.Write(&a, sample())
	idB, errB := image.Write(&b, sample())
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if idA != idB || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two archives of one image differ")
	}
	changed := sample()
	changed.Program = append(changed.Program, '!')
	idC, err := image.Write(io.Discard, changed)
	if err != nil {
		t.Fatal(err)
	}
	if idC == idA {
		t.Error("another program has the same identity")
	}
}

func TestWriteReportsTheWriter(t *testing.T) {
	if _, err := image.Write(full{}, sample()); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v, want the writer's", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

type file struct {
	header *tar.Header
	data   []byte
}

func untar(t *testing.T, data []byte) map[string]file {
	t.Helper()
	files := map[string]file{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = file{h, content}
	}
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func digest(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
