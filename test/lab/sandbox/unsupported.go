//go:build !linux

package sandbox

import (
	"context"
	"os"
	"os/exec"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Outside Linux there are no namespaces. Supported says so before any of these
// is reached.

// Spawn is not supported.
func Spawn(layout.Layout, string, Command) (Identity, error) { return Identity{}, Supported() }

// Init is not supported.
func Init(layout.Layout, string, []string, []*os.File) (int, error) { return 1, Supported() }

// Enter is not supported.
func (id Identity) Enter(*exec.Cmd) error { return Supported() }

// Containers returns none.
func Containers(layout.Layout) ([]string, error) { return nil, nil }

// RemoveCgroups has nothing to remove.
func RemoveCgroups(context.Context, string, []string) error { return nil }

// Residue returns none.
func Residue(layout.Layout) ([]string, error) { return nil, nil }
