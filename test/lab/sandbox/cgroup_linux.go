package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// containerdGroup is the control group that containerd makes its containers'
// groups in, named after its namespace.
const containerdGroup = "k8s.io"

// Containers returns the ids of the containers and pods that containerd has
// noted on disk; those of a lab that was killed are still there.
func Containers(l layout.Layout) ([]string, error) {
	seen := map[string]bool{}
	var ids []string
	for _, pattern := range []string{"io.containerd.grpc.v1.cri/containers/*", "io.containerd.grpc.v1.cri/sandboxes/*", "io.containerd.runtime.v2.task/k8s.io/*"} {
		paths, err := filepath.Glob(l.Run("containerd", pattern))
		if err != nil {
			return nil, fmt.Errorf("find containers: %w", err)
		}
		for _, path := range paths {
			if id := filepath.Base(path); !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// RemoveCgroups removes the control groups of containers that have ended, in
// each hierarchy under root (one a controller in version 1, a single one in
// version 2). They are all that a lab puts outside its namespaces: processes
// leave them empty, but only rmdir removes them. A group stays busy for a moment
// after its last process was killed, so busy ones are tried again.
func RemoveCgroups(ctx context.Context, root string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return process.Poll(ctx, func(context.Context) error {
		var busy error
		for _, parent := range groupParents(root) {
			for _, id := range ids {
				busy = errors.Join(busy, removeGroup(filepath.Join(parent, id)))
			}
			// Another lab's groups keep it.
			_ = os.Remove(parent)
		}
		return busy
	})
}

// groupParents are the folders that hold containerd's groups.
func groupParents(root string) []string {
	parents := []string{filepath.Join(root, containerdGroup)}
	hierarchies, err := filepath.Glob(filepath.Join(root, "*", containerdGroup))
	if err != nil {
		return parents
	}
	return append(parents, hierarchies...)
}

// removeGroup removes one group and those that the container made below it.
func removeGroup(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read control group %s: %w", group, err)
	}
	var busy error
	for _, entry := range entries {
		if entry.IsDir() {
			busy = errors.Join(busy, removeGroup(filepath.Join(group, entry.Name())))
		}
	}
	if err := syscall.Rmdir(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
		busy = errors.Join(busy, fmt.Errorf("remove control group %s: %w", group, err))
	}
	return busy
}
