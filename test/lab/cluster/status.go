package cluster

import (
	"os/exec"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// State is what is known of a lab from outside.
type State struct {
	Running bool
	// PID is the first process.
	PID int
	// Server and Prometheus are the URLs on the machine's loopback.
	Server, Prometheus, Kubeconfig string
	Components                     []Component
}

// Status returns the state of the lab. Components are known once it is up.
func Status(l layout.Layout) (State, error) {
	id, running, err := sandbox.Find(l)
	if err != nil || !running {
		return State{}, err
	}
	s, err := readSettings(l)
	if err != nil {
		return State{}, err
	}
	state := State{Running: true, PID: id.PID, Server: s.Server, Prometheus: s.Prometheus, Kubeconfig: l.Kubeconfig()}
	// Absent while the lab starts.
	state.Components, _ = readComponents(l.Run("components.json"))
	return state, nil
}

// Exec runs cmd inside the lab, with its kubectl and kubeconfig. The command's
// own streams are used.
func Exec(l layout.Layout, cmd *exec.Cmd, args []string) error {
	id, running, err := sandbox.Find(l)
	if err != nil {
		return err
	}
	if !running {
		return failure.New(failure.NotFound, "start it: lab up", "enter lab: it is not up")
	}
	// By way of the lab's own program, which finds the command on the PATH
	// that holds inside.
	cmd.Path = layout.Layout(layout.Inside).Bin("lab")
	cmd.Args = append([]string{"lab", "run", "--"}, args...)
	return id.Enter(cmd)
}

// Check returns an error that lists what a lab which was taken down has left.
func Check(l layout.Layout) error {
	_, running, err := sandbox.Find(l)
	if err != nil {
		return err
	}
	if running {
		return failure.New(failure.Differs, "take it down: lab down", "check that nothing is left: the lab is up")
	}
	found, err := sandbox.Residue(l)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return failure.New(failure.Differs, "lab down", "check that nothing is left: %s", strings.Join(found, ", "))
	}
	return nil
}
