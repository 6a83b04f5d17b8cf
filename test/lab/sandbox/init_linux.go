package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Init is the first process of the lab: it prepares the mounts, starts the
// command, and then reaps every process that loses its parent (containerd's
// shims do) until the command ends. It returns the command's exit code.
//
// Files are the descriptors that the command inherits as 3 and up.
func Init(l layout.Layout, path string, args []string, files []*os.File) (int, error) {
	// A signal without a handler does not reach the first process of a
	// process namespace (pid_namespaces(7)).
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	if err := mounts(l); err != nil {
		return 1, err
	}
	if err := syscall.Sethostname([]byte(NodeName)); err != nil {
		return 1, fmt.Errorf("set host name: %w", err)
	}
	child, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: append([]*os.File{nil, os.Stdout, os.Stderr}, files...),
	})
	if err != nil {
		return 1, fmt.Errorf("start %s: %w", path, err)
	}
	for _, f := range files {
		_ = f.Close() // the child's now; a pipe must end when the child does
	}
	ended := make(chan int, 1)
	go func() { ended <- reap(child.Pid) }()
	select {
	case <-stop:
		return 0, nil
	case code := <-ended:
		return code, nil
	}
}

// reap waits for children, of whatever origin, until the one called pid ends,
// and returns its exit code.
func reap(pid int) int {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1
		case got == pid && status.Signaled():
			return 128 + int(status.Signal())
		case got == pid:
			return status.ExitStatus()
		}
	}
}
