package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Program is one Go program to build.
type Program struct {
	// Name is the file name of the program.
	Name string
	// Module is the folder of its module, relative to the repository, and
	// Package what to build there.
	Module, Package string
	// LinkFlags are given to the linker beside -s -w, mostly version stamps.
	LinkFlags string
	// Pinned programs come from other modules at the version that go.sum
	// fixes. They are large, so whether they are up to date is decided from
	// their module's files without asking the go command.
	Pinned bool
}

const kubernetesVersion = "v1.37.2"

// Self is the lab's own program, which also runs inside.
func Self() Program {
	return Program{Name: "lab", Module: "test/lab", Package: "./cmd/lab"}
}

// Servers returns the cluster's own programs.
func Servers() []Program {
	kubernetes := Program{Name: "kubernetes", Module: "test/lab/servers/kubernetes", Package: ".", Pinned: true,
		// Unstamped, the node shows no version and clients see v0.0.0-master.
		LinkFlags: " -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37" +
			" -X k8s.io/client-go/pkg/version.gitVersion=" + kubernetesVersion}
	programs := []Program{kubernetes}
	for _, name := range []string{"operator", "adapter", "webhooks"} {
		programs = append(programs, Program{Name: "keda-" + name, Module: "test/lab/servers/keda", Pinned: true,
			Package: "github.com/kedacore/keda/v2/cmd/" + name,
			// Unstamped, every HPA gets the label version "main".
			LinkFlags: " -X github.com/kedacore/keda/v2/version.Version=2.21.0"})
	}
	return append(programs, Program{Name: "coredns", Module: "test/lab/servers/coredns", Package: ".", Pinned: true})
}

// multicall are the names that the kubernetes program answers to.
func multicall() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}
}

// build compiles the program into the lab's bin folder.
func (p Program) build(ctx context.Context, source string, l layout.Layout) error {
	module := filepath.Join(source, p.Module)
	target := l.Bin(p.Name)
	var key string
	if p.Pinned {
		var err error
		if key, err = p.key(module); err != nil {
			return fmt.Errorf("build %s: %w", p.Name, err)
		}
		if upToDate(l.Stamps(p.Name), key, target) {
			return nil
		}
	}
	// Not through a temporary name: the go command leaves an up-to-date
	// program alone, and replaces one that is running.
	_, err := run(ctx, module, environment(), "go", "build", "-trimpath", "-ldflags", "-s -w"+p.LinkFlags, "-o", target, p.Package)
	if err != nil {
		return failure.New(failure.KindOf(err), "see that `go version` is at least 1.26 and that modules can be downloaded", "build %s: %w", p.Name, err)
	}
	if !p.Pinned {
		return nil
	}
	return stamp(l.Stamps(p.Name), key, target)
}

// environment makes every program static. One setting for all of them, since
// each combination has its own compiled packages in Go's cache.
func environment() []string {
	return []string{"CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=-buildvcs=false -trimpath"}
}

// key identifies what a pinned program is built from.
func (p Program) key(module string) (string, error) {
	files, err := filepath.Glob(filepath.Join(module, "*.go"))
	if err != nil {
		return "", err
	}
	files = append(files, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum"))
	return digest([]string{p.Package, p.LinkFlags, runtime.GOARCH}, files)
}

// link gives the kubernetes program its names.
func link(l layout.Layout) error {
	for _, name := range multicall() {
		target, err := os.Readlink(l.Bin(name))
		if err == nil && target == "kubernetes" {
			continue
		}
		if err := os.RemoveAll(l.Bin(name)); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
		if err := os.Symlink("kubernetes", l.Bin(name)); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}
