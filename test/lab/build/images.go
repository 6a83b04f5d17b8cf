package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/kubectl-inference/kubectl-inference/test/lab/image"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Image is one container image: a program and the names it is known by.
type Image struct {
	Program
	Tags []string
}

// Images returns the images of everything that runs in pods.
func Images() []Image {
	return []Image{
		{Program{Name: "pause", Module: "test/lab", Package: "./cmd/pause"}, []string{PauseTag}},
		{Program{Name: "inference-job", Module: ".", Package: "./cmd/inference-job"}, []string{"lab.test/inference-job:dev"}},
		// Also under the name that the seed's InferenceService asks for, so
		// that its objects run as they are.
		{Program{Name: "engine", Module: ".", Package: "./test/fakes/engine/cmd/engine"}, []string{"lab.test/engine:dev", "docker.io/vllm/vllm-openai:v0.25.1"}},
		{Program{Name: "fakehub", Module: ".", Package: "./test/fakes/hub/cmd/fakehub"}, []string{"lab.test/hub:dev"}},
		{Program{Name: "versitygw", Module: "test/lab/servers/versitygw", Package: "github.com/versity/versitygw/cmd/versitygw", Pinned: true}, []string{"lab.test/versitygw:1.8.0"}},
		{Program{Name: "kserve-standin", Module: "test/lab", Package: "./kserve/cmd/kserve-standin"}, []string{"lab.test/kserve-standin:dev"}},
	}
}

// PauseTag is the image that holds a pod's namespaces.
const PauseTag = "lab.test/pause:1"

// Built describes an archive in the images folder.
type Built struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
	// ID is the image's identity, the digest of its configuration.
	ID string `json:"id"`
}

// pack writes the image's archive, unless it is there already.
func (i Image) pack(l layout.Layout) (Built, error) {
	built := Built{Name: i.Name, Tags: i.Tags}
	archive := l.Image(i.Name)
	key, err := digest(append([]string{"archive 1", runtime.GOARCH}, i.Tags...), []string{l.Bin(i.Name)})
	if err != nil {
		return built, fmt.Errorf("pack image %s: %w", i.Name, err)
	}
	note := l.Stamps(i.Name + ".id")
	if id, err := os.ReadFile(note); err == nil && upToDate(l.Stamps(i.Name+".image"), key, archive) {
		built.ID = string(id)
		return built, nil
	}
	program, err := os.ReadFile(l.Bin(i.Name))
	if err != nil {
		return built, fmt.Errorf("pack image %s: %w", i.Name, err)
	}
	var buf bytes.Buffer
	built.ID, err = image.Write(&buf, image.Image{Tags: i.Tags, Program: program, Name: i.Name, Architecture: runtime.GOARCH})
	if err != nil {
		return built, err
	}
	if err := os.WriteFile(archive, buf.Bytes(), 0o644); err != nil {
		return built, fmt.Errorf("pack image %s: %w", i.Name, err)
	}
	if err := os.WriteFile(note, []byte(built.ID), 0o644); err != nil {
		return built, fmt.Errorf("pack image %s: %w", i.Name, err)
	}
	return built, stamp(l.Stamps(i.Name+".image"), key, archive)
}

// index lists the archives, for the part of the lab that loads them.
func index(l layout.Layout) string { return l.Stamps("images.json") }

func writeIndex(l layout.Layout, images []Built) error {
	data, err := json.Marshal(images)
	if err == nil {
		err = os.WriteFile(index(l), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	return nil
}

// Archives returns the images that were built.
func Archives(l layout.Layout) ([]Built, error) {
	data, err := os.ReadFile(index(l))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var images []Built
	if err := json.Unmarshal(data, &images); err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return images, nil
}
