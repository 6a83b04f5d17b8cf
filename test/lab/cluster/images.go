package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/debian"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kube"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// loadImages loads those images into containerd that are not there yet, and
// notes which are.
func loadImages(ctx context.Context, c *kube.Cluster, env []string, tools debian.Tools) error {
	images, err := build.Archives(c.Layout)
	if err != nil {
		return err
	}
	note := c.Layout.Run("images.json")
	loaded := map[string]string{}
	data, err := os.ReadFile(note)
	if err == nil {
		err = json.Unmarshal(data, &loaded)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("load images: %w", err)
	}
	for _, image := range images {
		state := image.ID + " " + strings.Join(image.Tags, " ")
		if loaded[image.Name] == state {
			continue
		}
		if err := c.ImportImage(ctx, env, tools, image.Name); err != nil {
			return err
		}
		loaded[image.Name] = state
	}
	data, err = json.Marshal(loaded)
	if err == nil {
		err = os.WriteFile(note, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("load images: %w", err)
	}
	return nil
}

// LoadImages is loadImages for a program that runs inside the lab.
func LoadImages(ctx context.Context) error {
	l := layout.Layout(layout.Inside)
	tools, err := debian.Find(l)
	if err != nil {
		return err
	}
	return loadImages(ctx, &kube.Cluster{Layout: l}, insideEnv(l, tools, os.Environ()), tools)
}

// loadInside runs LoadImages inside the running lab.
func loadInside(l layout.Layout, id sandbox.Identity) error {
	cmd := exec.Command(layout.Layout(layout.Inside).Bin("lab"), "load-images")
	cmd.Dir = "/"
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := id.Enter(cmd); err != nil {
		return fmt.Errorf("load images: %w: %s", err, strings.TrimSpace(out.String()))
	}
	return nil
}
