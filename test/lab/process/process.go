// Package process runs the lab's servers: each with its output in a log file,
// waited for until it answers, and started again when it ends.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// Spec describes one server.
type Spec struct {
	// Name names the server in messages and its log file.
	Name string
	// Path is the program, Args its arguments without the program's name.
	Path string
	Args []string
	// Env is the whole environment, as in exec.Cmd; nil inherits.
	Env []string
	// Ready returns nil once the server does its work. It is called again and
	// again; its last error is reported when time runs out.
	Ready func(context.Context) error
}

// restartDelay keeps a server that ends at once from using a whole core.
const restartDelay = time.Second

// Process is a running server.
type Process struct {
	spec Spec
	log  string

	mu     sync.Mutex
	pid    int
	starts int

	// exited is closed when the first run ends; err then says how.
	exited chan struct{}
	err    error
}

// Start starts the server and keeps it running until ctx ends. What it writes
// goes to logPath, which is emptied first.
func Start(ctx context.Context, spec Spec, logPath string) (*Process, error) {
	p := &Process{spec: spec, log: logPath, exited: make(chan struct{})}
	if err := os.WriteFile(logPath, nil, 0o644); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	cmd, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	go p.keep(ctx, cmd)
	return p, nil
}

// run starts the program once. Its output is appended, so that the log tells of
// every run.
func (p *Process) run(ctx context.Context) (*exec.Cmd, error) {
	out, err := os.OpenFile(p.log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, p.spec.Path, p.spec.Args...)
	cmd.Env = p.spec.Env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid = cmd.Process.Pid
	p.starts++
	return cmd, nil
}

// keep waits for the program and starts it again, as a service manager would.
func (p *Process) keep(ctx context.Context, cmd *exec.Cmd) {
	p.err = cmd.Wait()
	close(p.exited)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
		next, err := p.run(ctx)
		if err != nil {
			continue
		}
		_ = next.Wait() // the log says why it ended
	}
}

// PID returns the process id of the current run, and how often the server has
// been started.
func (p *Process) PID() (pid, starts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid, p.starts
}

// Wait returns when the server is ready. It fails when the server ends first,
// or when ctx does; the error then ends with what the server wrote last.
func (p *Process) Wait(ctx context.Context) error {
	if p.spec.Ready == nil {
		return nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-waiting.Done():
		}
	}()
	err := Poll(waiting, p.spec.Ready)
	if err == nil {
		return nil
	}
	select {
	case <-p.exited:
		err = errors.New("it ended before it was ready")
		if p.err != nil {
			err = fmt.Errorf("it ended before it was ready: %w", p.err)
		}
	default:
	}
	return failure.New(failure.Failed, fmt.Sprintf("the whole log is log/%s.log in the lab's directory", p.spec.Name),
		"wait for %s: %w", p.spec.Name, &Silent{Err: err, Tail: Tail(p.log, tailLines)})
}

// Silent is the error of a server that does not become ready. It has the last
// lines of the server's log, which nearly always say why.
type Silent struct {
	Err error
	// Tail is what the server wrote last, several lines.
	Tail string
}

// Error returns the message without the log.
func (e *Silent) Error() string { return e.Err.Error() }

// Unwrap returns why waiting ended.
func (e *Silent) Unwrap() error { return e.Err }

// TailOf returns the log lines that err carries, or the empty string.
func TailOf(err error) string {
	var silent *Silent
	if errors.As(err, &silent) {
		return silent.Tail
	}
	return ""
}
