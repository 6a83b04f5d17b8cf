package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/cluster"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// TestLab is the lab on the real machine: up, used, up again, down, down again,
// and nothing left. It takes root and, the first time, long builds.
func TestLab(t *testing.T) {
	o := options(t)
	before := machine(t)
	t.Cleanup(func() {
		for _, want := range []bool{true, false} {
			running, err := cluster.Down(context.WithoutCancel(t.Context()), o)
			if err != nil {
				t.Fatal(err)
			}
			if running != want {
				t.Errorf("down: running %v, want %v", running, want)
			}
		}
		if err := cluster.Check(o.Layout); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, machine(t)); diff != "" {
			t.Errorf("the machine has changed (-before +after):\n%s", diff)
		}
	})

	lab, err := cluster.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !lab.Started {
		t.Error("a lab was up already")
	}
	again, err := cluster.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if again.Started || again.Kubeconfig != lab.Kubeconfig {
		t.Errorf("up a second time: %+v", again)
	}
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the machine has changed (-before +after):\n%s", diff)
	}
	use(t, o.Layout, o)
}

// A start that does not come to its end leaves nothing: time runs out, whoever
// started it is interrupted, or the lab is killed.
func TestLabAbandoned(t *testing.T) {
	tests := map[string]struct {
		timeout time.Duration
		// disturb is called in the midst of the start.
		disturb func(l layout.Layout, cancel context.CancelFunc) error
		want    failure.Kind
	}{
		"time runs out": {timeout: 1500 * time.Millisecond, want: failure.Timeout},
		"interrupted": {
			disturb: func(_ layout.Layout, cancel context.CancelFunc) error { cancel(); return nil },
			want:    failure.Interrupted,
		},
		"killed": {
			disturb: func(l layout.Layout, _ context.CancelFunc) error {
				id, _, err := sandbox.Find(l)
				if err != nil {
					return err
				}
				return syscall.Kill(id.PID, syscall.SIGKILL)
			},
			want: failure.Failed,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Timeout = tt.timeout
			before := machine(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &watched{t: t, word: "containerd", call: func() {
				if tt.disturb != nil {
					if err := tt.disturb(o.Layout, cancel); err != nil {
						t.Error(err)
					}
				}
			}}
			o.Report = cluster.NewReport(out, time.Now)
			_, err := cluster.Up(ctx, o)
			if err == nil {
				t.Fatal("the lab is up")
			}
			if got := failure.KindOf(err); got != tt.want {
				t.Errorf("kind %d, want %d: %v", got, tt.want, err)
			}
			if err := cluster.Check(o.Layout); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, machine(t)); diff != "" {
				t.Errorf("the machine has changed (-before +after):\n%s", diff)
			}
		})
	}
}

// watched is a writer that calls once when a word is written.
type watched struct {
	t    *testing.T
	word string
	call func()
	once sync.Once
}

func (w *watched) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimRight(p, "\n"))
	if bytes.HasPrefix(p, []byte(w.word)) {
		w.once.Do(w.call)
	}
	return len(p), nil
}

// options are those of a lab in a folder of its own, with what was built for the
// repository's: not the lab that someone may be using.
func options(t *testing.T) cluster.Options {
	t.Helper()
	if os.Getenv("LAB") == "" {
		t.Skip("set LAB=1 to start a real cluster; needs root (make lab-test does)")
	}
	source, err := build.Root(mustGetwd(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "lab")
	share(t, filepath.Join(source, ".lab"), dir)
	l, err := layout.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.Options{Layout: l, Source: source, HPASync: 5 * time.Second, Report: cluster.NewReport(t.Output(), time.Now)}
}

// use checks what others rely on.
func use(t *testing.T, l layout.Layout, o cluster.Options) {
	const query = "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query?query=up"
	tests := map[string]struct {
		args   []string
		inside bool
		want   string
	}{
		"node":                 {args: []string{"get", "node", "node1", "-o", "jsonpath={.status.allocatable.nvidia\\.com/gpu} {.metadata.labels.gpu}"}, want: "6 true"},
		"external metrics API": {args: []string{"get", "--raw", "/apis/external.metrics.k8s.io/v1beta1"}, want: "externalmetrics"},
		"Prometheus":           {args: []string{"get", "--raw", query}, want: `"status":"success"`},
		"logs":                 {args: []string{"logs", "-n", "hub", "deploy/hub"}, want: "listening hub"},
		"exec":                 {args: []string{"exec", "-n", "hub", "deploy/hub", "--", "/fakehub", "--help"}, want: "cdn-listen"},
		"inside":               {inside: true, args: []string{"sh", "-c", "hostname; kubectl get --raw /readyz; getent hosts kube-prometheus-stack-prometheus.monitoring.svc.cluster.local"}, want: "node1\nok10.96."},
		"webhook refuses": {args: []string{"create", "-f", "testdata/refused.yaml"},
			want: "admission webhook"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var err error
			if tt.inside {
				err = cluster.Exec(l, &exec.Cmd{Stdout: &out, Stderr: &out}, tt.args)
			} else {
				cmd := exec.Command(l.Bin("kubectl"), append([]string{"--kubeconfig", l.Kubeconfig()}, tt.args...)...)
				cmd.Stdout, cmd.Stderr = &out, &out
				err = cmd.Run()
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("output %q lacks %q (error %v)", out.String(), tt.want, err)
			}
		})
	}
	t.Run("the same workloads elsewhere", func(t *testing.T) {
		// Another lab's directory, pointed at this cluster; the images are
		// there already.
		other, err := layout.At(filepath.Join(t.TempDir(), "other"))
		if err != nil {
			t.Fatal(err)
		}
		share(t, string(l), string(other))
		elsewhere := o
		elsewhere.Layout, elsewhere.Kubeconfig, elsewhere.Prometheus = other, l.Kubeconfig(), "http://prometheus.monitoring.svc:9090"
		lab, err := cluster.Up(t.Context(), elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		if lab.Prometheus != elsewhere.Prometheus {
			t.Errorf("lab %+v", lab)
		}
		if _, err := cluster.Down(t.Context(), elsewhere); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(l.Bin("kubectl"), "--kubeconfig", l.Kubeconfig(), "get", "namespace", "storage", "hub", "--ignore-not-found", "-o", "name").CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("namespaces left: %s (error %v)", out, err)
		}
	})
}

// machine is what a lab might change of the machine: links, mounts, named
// network namespaces, packet filter rules, and the folders that servers put
// things into by themselves.
func machine(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		state["links"] += link.Name + " "
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	state["mounts"] = string(mounts)
	for _, pattern := range []string{"/run/*", "/run/netns/*", "/etc/*", "/opt/*", "/usr/libexec/*", "/var/lib/*", "/var/log/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		state[pattern] = fmt.Sprint(paths)
	}
	if rules, err := exec.Command("iptables-save").Output(); err == nil {
		for line := range strings.Lines(string(rules)) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") { // dates and counters
				state["rules"] += line
			}
		}
	}
	return state
}

// share lets the lab in dir use what was built in from.
func share(t *testing.T, from, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "images", "debian", "objects", "stamps"} {
		target, link := filepath.Join(from, folder), filepath.Join(dir, folder)
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
