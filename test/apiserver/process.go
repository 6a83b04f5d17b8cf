package apiserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	dirPrefix = "test-apiserver-"
	// logTail is how much of a failed server's log goes into the error.
	logTail = 4096
	// stopGrace is how long a server may take to end by itself.
	stopGrace = 2 * time.Second
)

// errExited says that a server ended before it was ready.
var errExited = errors.New("server exited")

// process is one running server.
type process struct {
	name   string
	log    string
	handle *os.Process
	exited chan struct{}
}

// launch starts the binary with args, whose first names the server.
func launch(dir, binary string, args []string) (*process, error) {
	p := &process{name: args[0], log: filepath.Join(dir, args[0]+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	command := exec.Command(binary, args...)
	command.Dir = dir
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// The kernel ties the death signal to the thread that started the
		// child, not to the process: that thread must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			command.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	p.handle = command.Process
	return p, nil
}

// failed returns an error with the end of the log when the process has ended.
func (p *process) failed() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s: %w: %s", p.name, errExited, p.tail())
	default:
		return nil
	}
}

func (p *process) tail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(content[max(0, len(content)-logTail):]))
}

// stop asks the process to end, and kills it when it takes too long.
func (p *process) stop() {
	if p == nil {
		return
	}
	p.handle.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopGrace):
		p.handle.Kill()
		<-p.exited
	}
}

// freePorts returns n different loopback ports that no one listens on.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		// Kept open until all are chosen, so that they differ.
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// removeStale removes the directories that test processes left in root when
// they ended without a chance to clean up: those whose process is gone.
func removeStale(root string) {
	dirs, _ := filepath.Glob(filepath.Join(root, dirPrefix+"*"))
	for _, dir := range dirs {
		rest := strings.TrimPrefix(filepath.Base(dir), dirPrefix)
		owner, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			os.RemoveAll(dir)
		}
	}
}
