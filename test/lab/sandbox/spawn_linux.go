// Package sandbox keeps the lab apart from the machine it runs on: its own
// mount, process, network, IPC and host name spaces, ended as one.
//
// The first process of the new process namespace (Init) only reaps; when it
// ends, for whatever reason, the kernel ends every other one, and with the last
// of them go the mounts, the bridge and the packet filter's rules.
package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

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

// save writes which process the lab is.
func (id Identity) save(l layout.Layout) error {
	data, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("note process: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(identityFile(l)), 0o755); err != nil {
		return fmt.Errorf("note process: %w", err)
	}
	if err := os.WriteFile(identityFile(l), data, 0o644); err != nil {
		return fmt.Errorf("note process: %w", err)
	}
	return nil
}

func identityFile(l layout.Layout) string { return l.Run("init.json") }
