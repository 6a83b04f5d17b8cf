package cluster

import (
	"os"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/debian"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Run becomes the command args, with the lab's environment. It returns only
// when that fails.
func Run(args []string) error {
	l := layout.Layout(layout.Inside)
	tools, err := debian.Find(l)
	if err != nil {
		return err
	}
	env := insideEnv(l, tools, os.Environ())
	tools.Path = l.Bin("") + ":" + tools.Path
	path, err := tools.Lookup(args[0])
	if err != nil {
		return failure.New(failure.NotFound, "", "run in lab: %w", err)
	}
	if err := syscall.Exec(path, args, env); err != nil {
		return failure.New(failure.Failed, "", "run %s in lab: %w", args[0], err)
	}
	return nil
}
