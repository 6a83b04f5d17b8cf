// Package stories tells user stories on the lab's real cluster: the built
// plugin, through kubectl, as a person types it.
package stories

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/cluster"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
)

// poll is how often wait-for looks.
const poll = 2 * time.Second

func TestStories(t *testing.T) {
	if os.Getenv("LAB_STORIES") == "" {
		t.Skip("needs the lab: run make lab-test")
	}
	source, directory, kubeconfig := bringUp(t, 5*time.Second)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return setup(env, source, directory, kubeconfig) },
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"wait-for": waitFor, "model": pinnedModel, "capture": capture, "evict": evict},
	})
}

// bringUp brings the lab up, or uses the one that is up, or that of
// LAB_KUBECONFIG. A lab that it started it takes down again.
func bringUp(t *testing.T, hpaSync time.Duration) (source, directory, kubeconfig string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	source, err = build.Root(here)
	if err != nil {
		t.Fatal(err)
	}
	directory = os.Getenv("LAB_DIR")
	if directory == "" {
		directory = filepath.Join(source, ".lab")
	}
	at, err := layout.At(directory)
	if err != nil {
		t.Fatal(err)
	}
	options := cluster.Options{
		Layout: at, Source: source, Report: cluster.NewReport(t.Output(), time.Now), HPASync: hpaSync,
		Kubeconfig: os.Getenv("LAB_KUBECONFIG"), Prometheus: os.Getenv("LAB_PROMETHEUS"),
	}
	lab, err := cluster.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if lab.Started && os.Getenv("LAB_KEEP") == "" {
		t.Cleanup(func() {
			if _, err := cluster.Down(context.WithoutCancel(t.Context()), options); err != nil {
				t.Error(err)
			}
			if err := cluster.Check(at); err != nil {
				t.Error(err)
			}
		})
	}
	return source, directory, lab.Kubeconfig
}

// setup gives each story a kubeconfig of its own, so that it may choose its
// namespace, and what every story needs.
func setup(env *testscript.Env, source, directory, kubeconfig string) error {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return err
	}
	own := filepath.Join(env.WorkDir, "kubeconfig")
	if err := os.WriteFile(own, data, 0o600); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"KUBECONFIG":              own,
		"HOME":                    env.WorkDir,
		"PATH":                    strings.Join([]string{filepath.Join(source, "bin"), filepath.Join(directory, "bin"), os.Getenv("PATH")}, string(os.PathListSeparator)),
		"KUBECTL_INFERENCE_IMAGE": "lab.test/inference-job:dev",
		"EXAMPLES":                filepath.Join(source, "manifests", "examples"),
		"HUB":                     "http://hub.hub.svc:8080",
		"S3":                      "http://s3.storage.svc:7070",
	} {
		env.Setenv(name, value)
	}
	return nil
}

// waitFor runs a command until its output matches: wait-for TIMEOUT REGEXP
// COMMAND [ARG...].
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: wait-for TIMEOUT REGEXP COMMAND [ARG...]")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	wanted, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	deadline := time.Now().Add(limit)
	for {
		output, err := run(ts, args[2], args[3:])
		if err == nil && wanted.MatchString(output) {
			ts.Logf("%s", output)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after %v the output still does not match %q: %v\n%s", limit, args[1], err, output)
		}
		time.Sleep(poll)
	}
}

func run(ts *testscript.TestScript, name string, args []string) (string, error) {
	path, err := lookPath(ts.Getenv("PATH"), name)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "PATH="+ts.Getenv("PATH"), "HOME="+ts.Getenv("HOME"), "KUBECTL_INFERENCE_IMAGE="+ts.Getenv("KUBECTL_INFERENCE_IMAGE"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	return output.String(), err
}

// capture sets a variable to what the last command printed: capture NAME.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: capture NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// evict asks the API server to evict a pod, as a drained node does: evict POD.
func evict(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: evict POD")
	}
	namespace, err := run(ts, "kubectl", []string{"config", "view", "--minify", "-o", "jsonpath={.contexts[0].context.namespace}"})
	ts.Check(err)
	eviction := fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": %q}}`, args[0], namespace)
	file := ts.MkAbs("eviction.json")
	ts.Check(os.WriteFile(file, []byte(eviction), 0o600))
	output, err := run(ts, "kubectl", []string{"create", "--raw", "/api/v1/namespaces/" + namespace + "/pods/" + args[0] + "/eviction", "-f", file})
	if err != nil {
		ts.Fatalf("evict %s: %v: %s", args[0], err, output)
	}
}

func lookPath(list, name string) (string, error) {
	for _, directory := range filepath.SplitList(list) {
		path := filepath.Join(directory, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: not on the PATH", name)
}

// pinnedModel sets MODEL and SHA to a model of the Hub stand-in, which prints
// what it serves when it starts.
func pinnedModel(ts *testscript.TestScript, _ bool, _ []string) {
	const model = "lab/deepseek-r1-distill-qwen-14b-awq"
	output, err := run(ts, "kubectl", []string{"logs", "-n", "hub", "deploy/hub"})
	ts.Check(err)
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "model" && fields[1] == model {
			ts.Setenv("MODEL", model)
			ts.Setenv("SHA", fields[2])
			return
		}
	}
	ts.Fatalf("the Hub stand-in does not serve %s", model)
}
