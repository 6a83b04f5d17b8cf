package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/debian"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Reporter tells how the work goes.
type Reporter interface {
	// Step runs one step and reports its name and duration.
	Step(ctx context.Context, name string, run func(context.Context) error) error
}

// Root finds the repository's root from dir upwards.
func Root(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "test", "lab", "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", failure.New(failure.Usage, "run it inside a clone of the repository, or give --source", "find source: no test/lab/go.mod in %s or above", dir)
		}
	}
}

// Cluster builds all that a cluster of our own needs, from the repository at
// source: servers, tools, KEDA's objects, the lab's own program.
func Cluster(ctx context.Context, source string, l layout.Layout, report Reporter) error {
	for _, program := range append(Servers(), Self()) {
		err := report.Step(ctx, "build "+program.Name, func(ctx context.Context) error {
			return program.build(ctx, source, l)
		})
		if err != nil {
			return err
		}
	}
	if err := link(l); err != nil {
		return err
	}
	if err := report.Step(ctx, "KEDA's objects", func(ctx context.Context) error { return kedaObjects(ctx, source, l) }); err != nil {
		return err
	}
	return report.Step(ctx, "Debian's tools", func(ctx context.Context) error { return debian.Install(ctx, l) })
}

// Programs builds single programs by their names.
func Programs(ctx context.Context, source string, l layout.Layout, names []string, report Reporter) error {
	known := append(Servers(), Self())
	for _, img := range Images() {
		known = append(known, img.Program)
	}
	var all []string
	for _, program := range known {
		all = append(all, program.Name)
	}
	for _, name := range names {
		at := slices.Index(all, name)
		if at < 0 {
			return failure.New(failure.Usage, "the programs are "+strings.Join(all, ", "), "build %s: there is no such program", name)
		}
		err := report.Step(ctx, "build "+name, func(ctx context.Context) error { return known[at].build(ctx, source, l) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Pods builds the images of all that runs in pods.
func Pods(ctx context.Context, source string, l layout.Layout, report Reporter) ([]Built, error) {
	var images []Built
	for _, img := range Images() {
		var built Built
		err := report.Step(ctx, "image "+img.Name, func(ctx context.Context) error {
			if err := img.build(ctx, source, l); err != nil {
				return err
			}
			var err error
			built, err = img.pack(l)
			return err
		})
		if err != nil {
			return nil, err
		}
		images = append(images, built)
	}
	if err := writeIndex(l, images); err != nil {
		return nil, fmt.Errorf("build images: %w", err)
	}
	return images, nil
}
