package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// Cgroups returns the control groups of the lab, in each hierarchy (one a
// controller in version 1, a single one in version 2), deepest first. They are
// all that a lab puts outside its namespaces: processes leave them empty, but
// only rmdir removes them.
func Cgroups(root string, l layout.Layout) ([]string, error) {
	tops, err := filepath.Glob(filepath.Join(root, "*", l.Cgroup()))
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	if unified := filepath.Join(root, l.Cgroup()); isDir(unified) {
		tops = append(tops, unified)
	}
	var groups []string
	for _, top := range tops {
		// Controllers mounted together have a link for each name.
		if real, err := filepath.EvalSymlinks(top); err != nil || real != top {
			continue
		}
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if d != nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find control groups: %w", err)
		}
	}
	slices.Reverse(groups)
	return groups, nil
}

// RemoveCgroups removes the control groups of the lab. A group stays busy for a
// moment after its last process was killed, so busy ones are tried again.
func RemoveCgroups(ctx context.Context, root string, l layout.Layout) error {
	return process.Poll(ctx, func(context.Context) error {
		groups, err := Cgroups(root, l)
		if err != nil {
			return err
		}
		var busy error
		for _, group := range groups {
			if err := syscall.Rmdir(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
				busy = errors.Join(busy, fmt.Errorf("remove control group %s: %w", group, err))
			}
		}
		return busy
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
