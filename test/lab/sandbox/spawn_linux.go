package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// Spawn starts `program init -- command` in new namespaces, away from the
// caller's session, and notes which process it is in the run folder.
func Spawn(l layout.Layout, program string, command Command) (Identity, error) {
	log, err := os.Create(l.Log("lab"))
	if err != nil {
		return Identity{}, fmt.Errorf("start lab: %w", err)
	}
	defer log.Close()
	args := append([]string{"init", "--dir", string(l), "--", command.Path}, command.Args...)
	cmd := exec.Command(program, args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = command.Files
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) {
			return Identity{}, failure.New(failure.Denied, "it needs CAP_SYS_ADMIN: run on the host, in a privileged container, or set LAB_KUBECONFIG", "start lab: make namespaces: %w", err)
		}
		return Identity{}, fmt.Errorf("start lab: make namespaces: %w", err)
	}
	// Reaps it, should the caller live longer than the lab.
	go func() { _ = cmd.Wait() }()
	id, err := identify(cmd.Process.Pid)
	if err == nil {
		err = id.save(l)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return Identity{}, fmt.Errorf("start lab: %w", err)
	}
	return id, nil
}
