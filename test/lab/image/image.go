// Package image writes container images without a registry and without a
// container engine: a docker-archive (`docker load`, `ctr images import`,
// `kind load image-archive`) with one layer, FROM scratch, around one static
// program.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"time"
)

// User is the numeric user and group that every image runs as: not root, as
// restricted Pod Security asks for, and the number that distroless images use.
const User = 65532

// Image describes one image.
type Image struct {
	// Tags are full references, registry/name:tag.
	Tags []string
	// Program is the static program; it becomes /NAME and the entrypoint.
	Program []byte
	// Name is the program's file name.
	Name string
	// Architecture is a GOARCH.
	Architecture string
}

// config is the image configuration of the OCI image specification, as far as
// it is used here.
type config struct {
	Architecture string          `json:"architecture"`
	OS           string          `json:"os"`
	Created      time.Time       `json:"created"`
	Config       containerConfig `json:"config"`
	RootFS       rootFS          `json:"rootfs"`
}

type containerConfig struct {
	User       string   `json:"User"`
	Env        []string `json:"Env"`
	Entrypoint []string `json:"Entrypoint"`
	WorkingDir string   `json:"WorkingDir"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// manifest is one entry of manifest.json, the index of a docker-archive.
type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes the archive to w and returns the image's identity, the SHA-256
// of its configuration. The same image always gives the same bytes.
func Write(w io.Writer, img Image) (string, error) {
	layer, err := layer(img)
	if err != nil {
		return "", fmt.Errorf("write layer of %s: %w", img.Name, err)
	}
	layerSum := sum(layer)
	conf, err := json.Marshal(config{
		Architecture: img.Architecture,
		OS:           "linux",
		Config: containerConfig{
			User:       fmt.Sprintf("%d:%d", User, User),
			Env:        []string{"PATH=/"},
			Entrypoint: []string{"/" + img.Name},
			WorkingDir: "/tmp",
		},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + layerSum}},
	})
	if err != nil {
		return "", fmt.Errorf("write configuration of %s: %w", img.Name, err)
	}
	id := sum(conf)
	index, err := json.Marshal([]manifest{{Config: id + ".json", RepoTags: img.Tags, Layers: []string{layerSum + ".tar"}}})
	if err != nil {
		return "", fmt.Errorf("write manifest of %s: %w", img.Name, err)
	}
	tw := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"manifest.json", index},
		{id + ".json", conf},
		{layerSum + ".tar", layer},
	} {
		if err := add(tw, f.name, f.data, 0o644, 0); err != nil {
			return "", fmt.Errorf("write archive of %s: %w", img.Name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return "", fmt.Errorf("write archive of %s: %w", img.Name, err)
	}
	return "sha256:" + id, nil
}

// layer is the root file system: the program, /etc with the user's entry (Go's
// os/user and some libraries ask for it), and a /tmp that the user may write.
func layer(img Image) ([]byte, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	passwd := "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + strconv.Itoa(User) + ":" + strconv.Itoa(User) + ":nonroot:/tmp:/sbin/nologin\n"
	group := "root:x:0:\nnonroot:x:" + strconv.Itoa(User) + ":\n"
	for _, f := range []struct {
		name string
		data []byte
		mode fs.FileMode
		uid  int
	}{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", data: []byte(passwd), mode: 0o644},
		{name: "etc/group", data: []byte(group), mode: 0o644},
		{name: "tmp/", mode: 0o1777, uid: User},
		{name: img.Name, data: img.Program, mode: 0o755},
	} {
		if err := add(tw, f.name, f.data, f.mode, f.uid); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// add writes one file, or a folder when the name ends in a slash. No times, so
// that archives do not differ from build to build.
func add(tw *tar.Writer, name string, data []byte, mode fs.FileMode, uid int) error {
	h := &tar.Header{Name: name, Mode: int64(mode), Uid: uid, Gid: uid, Size: int64(len(data)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if name[len(name)-1] == '/' {
		h.Typeflag = tar.TypeDir
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := tw.Write(data)
	return err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
