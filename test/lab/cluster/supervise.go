package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/test/lab/debian"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kube"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// The descriptors that the outside passes in, in the order of sandbox.Command.
const (
	serverSocket = 3 + iota
	prometheusSocket
	progressPipe
)

// supervisor starts the servers and keeps them, inside the sandbox.
type supervisor struct {
	layout   layout.Layout
	settings settings
	report   *Report
	log      *log.Logger
	env      []string
	tools    debian.Tools
	cluster  *kube.Cluster
	config   *rest.Config
	client   *kubernetes.Clientset
	// life is the context of the servers. They outlive the start.
	life context.Context

	mu        sync.Mutex
	processes map[string]*process.Process
}

// Supervise is the lab's inside: it starts everything, tells how that goes, and
// then keeps it running until ctx ends.
func Supervise(ctx context.Context, now func() time.Time) error {
	l := layout.Layout(layout.Inside)
	progress := os.NewFile(progressPipe, "progress")
	s := &supervisor{
		layout: l, life: ctx, processes: map[string]*process.Process{},
		report: newEvents(progress, now),
		log:    log.New(os.Stderr, "", log.LstdFlags|log.LUTC),
	}
	err := s.prepare()
	if err == nil {
		err = s.start(ctx, now)
	}
	if err != nil {
		_ = s.report.fail(err) // nobody may be there to hear it
		return err
	}
	if err := s.report.send(event{Ready: true}); err != nil {
		return err
	}
	_ = progress.Close()
	return s.keepStatus(ctx)
}

// prepare reads what was passed in.
func (s *supervisor) prepare() error {
	var err error
	if s.settings, err = readSettings(s.layout); err != nil {
		return err
	}
	if s.tools, err = debian.Find(s.layout); err != nil {
		return err
	}
	// Temporary files of the servers stay inside too.
	const temporary = "/run/tmp"
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return fmt.Errorf("create folder for temporary files: %w", err)
	}
	s.env = append(insideEnv(s.layout, s.tools, os.Environ()), "TMPDIR="+temporary)
	return nil
}

// insideEnv is the environment of everything inside: the tools, kubectl with
// its kubeconfig, and no proxy, since there is no way out.
func insideEnv(l layout.Layout, tools debian.Tools, env []string) []string {
	var kept []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasSuffix(strings.ToLower(name), "_proxy") && name != "KUBECONFIG" {
			kept = append(kept, entry)
		}
	}
	tools.Path = l.Bin("") + ":" + tools.Path
	c := kube.Cluster{Layout: l}
	return append(tools.Env(kept), "KUBECONFIG="+c.Kubeconfig("admin"))
}

// run starts a server and waits until it is ready. Its context is the lab's,
// the wait's is the start's.
func (s *supervisor) run(ctx context.Context, spec process.Spec) error {
	return s.report.Step(ctx, spec.Name, func(ctx context.Context) error {
		p, err := process.Start(s.life, spec, s.layout.Log(spec.Name))
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.processes[spec.Name] = p
		s.mu.Unlock()
		return p.Wait(ctx)
	})
}

// Component is the state of one server.
type Component struct {
	Name string `json:"name"`
	// PID is the process id inside the lab.
	PID int `json:"pid"`
	// Restarts counts how often it had to be started again.
	Restarts int `json:"restarts"`
}

// keepStatus writes the state of the servers for `lab status`, whenever it
// changes, until ctx ends.
func (s *supervisor) keepStatus(ctx context.Context) error {
	var written string
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		data, err := json.Marshal(s.components())
		if err == nil && string(data) != written {
			err = os.WriteFile(s.layout.Run("components.json"), data, 0o644)
			written = string(data)
		}
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
