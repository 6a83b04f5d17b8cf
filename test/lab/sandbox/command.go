package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// NodeName is the host name inside, and the name of the cluster's only node.
const NodeName = "node1"

// Command describes the program that Init runs inside.
type Command struct {
	// Path and Args are the program, which must be found inside under the same
	// path, and its arguments.
	Path string
	Args []string
	// Files are passed on as descriptors 3 and up. A listening socket keeps
	// the network namespace it was made in, so this is how the lab is reached
	// from outside.
	Files []*os.File
}

// ExitCode returns the exit code of a command that ran, and false when err says
// that it could not be run.
func ExitCode(err error) (int, bool) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, false
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), true
	}
	return exit.ExitCode(), true
}
