package root

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

func execute(t *testing.T, ctx context.Context, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Execute(ctx, args, term.New(strings.NewReader(""), &out, &errs, environ), "v1.2.3")
	return out.String(), errs.String(), code
}

func TestExecute(t *testing.T) {
	t.Setenv("KUBECONFIG", t.TempDir()+"/absent")
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"version":            {[]string{"--version"}, 0, ""},
		"no such command":    {[]string{"nonsense"}, 2, "error: run \"nonsense\": there is no such command\nhint: `kubectl inference --help` lists the commands\n"},
		"a beginning":        {[]string{"explain", "isvc/a"}, 2, "error: run \"explain\": there is no such command\nhint: did you mean `kubectl inference explain-scaling`?\n"},
		"a slip":             {[]string{"envelpoe"}, 2, "error: run \"envelpoe\": there is no such command\nhint: did you mean `kubectl inference envelope`?\n"},
		"no such flag":       {[]string{"--nonsense"}, 2, "error: read flags: unknown flag: --nonsense\nhint: `kubectl inference --help` lists the flags\n"},
		"no such flag below": {[]string{"tune", "--nonsense"}, 2, "error: read flags: unknown flag: --nonsense\nhint: `kubectl inference tune --help` lists the flags\n"},
		"no such colour":     {[]string{"--color", "blue"}, 2, "error: read flags: invalid argument \"blue\" for \"--color\" flag: use one of auto, always, never\nhint: `kubectl inference --help` lists the flags\n"},
		"not there":          {[]string{"manifests", "gone"}, 5, "error: print \"gone\": there is no such manifest\nhint: `kubectl inference manifests` lists the names\n"},
		"a word for options": {[]string{"options", "x"}, 2, "error: run \"x\": there is no such command\nhint: `kubectl inference options --help` lists the commands\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := execute(t, t.Context(), nil, test.args...)
			if diff := cmp.Diff(test.want, stderr); diff != "" || code != test.code {
				t.Errorf("exit code %d, want %d; standard error (-want +got):\n%s", code, test.code, diff)
			}
		})
	}
}

// TestEveryKindHasItsCode: the numbers are part of the contract and of the help.
func TestEveryKindHasItsCode(t *testing.T) {
	for kind, code := range map[failure.Kind]int{failure.Failed: 1, failure.Usage: 2, failure.Differs: 3, failure.Denied: 4, failure.NotFound: 5, failure.Unreachable: 6, failure.Timeout: 124, failure.Interrupted: 130} {
		if got := failure.ExitCode(failure.New(kind, "", "x")); got != code {
			t.Errorf("kind %d ends with %d", kind, got)
		}
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^  %d +\S`, code)).MatchString(exitCodes) {
			t.Errorf("the help does not tell %d", code)
		}
	}
}

type brokenPipe struct{ err error }

func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }

// TestBrokenPipe: the reader of a pipe may go away, as head does.
func TestBrokenPipe(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
	}{
		"the reader went away": {&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, 0},
		"the disk is full":     {syscall.ENOSPC, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			code := Execute(t.Context(), []string{"manifests"}, term.New(nil, brokenPipe{test.err}, &errs, nil), "v1")
			if code != test.code || (code == 0) != (errs.Len() == 0) {
				t.Errorf("exit code %d, standard error %q", code, errs.String())
			}
		})
	}
}

// TestInterrupted: who pressed Ctrl-C knows it.
func TestInterrupted(t *testing.T) {
	kubeconfig, _ := cluster(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, stderr, code := execute(t, ctx, nil, "bench", "list", "--kubeconfig", kubeconfig)
	if code != 130 || stderr != "" {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

// cluster is a listener that stands for the cluster, and a kubeconfig for it;
// dialled says whether somebody connected.
func cluster(t *testing.T) (kubeconfig string, dialled func() bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan string, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connected <- connection.RemoteAddr().String()
			// An answer that is not tried again.
			_, _ = connection.Read(make([]byte, 4096))
			fmt.Fprint(connection, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			connection.Close()
		}
	}()
	t.Cleanup(func() { listener.Close(); <-ended })
	kubeconfig = t.TempDir() + "/config"
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "http://%s"}}]}`, listener.Addr())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, func() bool {
		// Connections are accepted in their order: all that come before this
		// last one are somebody else's.
		last, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		last.Close()
		others := 0
		for address := range connected {
			if address == last.LocalAddr().String() {
				break
			}
			others++
		}
		return others > 0
	}
}

// TestNoConnection: help, version and completion of words ask nobody.
func TestNoConnection(t *testing.T) {
	kubeconfig, dialled := cluster(t)
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("HOME", t.TempDir())
	lines := [][]string{{}, {"--help"}, {"help"}, {"--version"}, {"options"}, {"manifests"}, {"manifests", "rbac"}, {"completion", "bash"},
		{cobra.ShellCompRequestCmd, ""}, {cobra.ShellCompRequestCmd, "manifests", ""}, {cobra.ShellCompRequestCmd, "bench", "--api", ""}, {"nonsense"}}
	var walk func(*cobra.Command, []string)
	walk = func(cmd *cobra.Command, path []string) {
		for _, sub := range cmd.Commands() {
			here := append(append([]string{}, path...), sub.Name())
			lines = append(lines, append(here, "--help"))
			walk(sub, here)
		}
	}
	walk(New(term.New(nil, io.Discard, io.Discard, nil), "v1"), nil)
	for _, line := range lines {
		stdout, stderr, code := execute(t, t.Context(), nil, line...)
		if code != 0 && line[0] != "nonsense" {
			t.Errorf("%q: exit code %d: %s", line, code, stderr)
		}
		if code == 0 && stdout == "" {
			t.Errorf("%q prints nothing", line)
		}
	}
	if dialled() {
		t.Error("the cluster was asked")
	}
	// The same listener hears a command that needs the cluster.
	kubeconfig, dialled = cluster(t)
	if _, _, code := execute(t, t.Context(), nil, "bench", "list", "--kubeconfig", kubeconfig); code != int(failure.Unreachable) || !dialled() {
		t.Errorf("exit code %d: this test proves nothing", code)
	}
}

// TestHelp: each command says what it does, with an example as a user types it.
func TestHelp(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			switch sub.Name() {
			case "help", "completion", "options":
				continue
			}
			if sub.Short == "" || !strings.Contains(sub.Example, sub.CommandPath()) || sub.RunE == nil {
				t.Errorf("%s: short %q, example %q", sub.CommandPath(), sub.Short, sub.Example)
			}
			walk(sub)
		}
	}
	root := New(term.New(nil, io.Discard, io.Discard, nil), "v1")
	walk(root)

	stdout, _, _ := execute(t, t.Context(), nil, "--help")
	for _, want := range []string{"The loop:\n  sync-model", "Exit codes:\n  0    done", `Use "kubectl inference options"`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the help lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "--kubeconfig") {
		t.Error("the flags of a kubeconfig bury the commands")
	}
	if stdout, _, _ := execute(t, t.Context(), nil, "options"); !strings.Contains(stdout, "--kubeconfig") || !strings.Contains(stdout, "--color when") {
		t.Errorf("options lacks flags:\n%s", stdout)
	}
	if stdout, _, _ := execute(t, t.Context(), nil, "bench", "--help"); strings.Contains(stdout, "Exit codes") || !strings.Contains(stdout, "--concurrency") {
		t.Errorf("bench --help:\n%s", stdout)
	}
}

func TestColor(t *testing.T) {
	report := []string{"envelope", "../../manifests/examples/seed-benchreport.json"}
	for name, test := range map[string]struct {
		environ, args []string
		want          bool
	}{
		"never by itself":      {nil, report, false},
		"always":               {nil, append([]string{"--color", "always"}, report...), true},
		"after the command":    {nil, append(report[:2:2], "--color=always"), true},
		"always over NO_COLOR": {[]string{"NO_COLOR=1"}, append([]string{"--color=always"}, report...), true},
		"CLICOLOR_FORCE":       {[]string{"CLICOLOR_FORCE=1"}, report, true},
		"never over the force": {[]string{"CLICOLOR_FORCE=1"}, append([]string{"--color=never"}, report...), false},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := execute(t, t.Context(), test.environ, test.args...)
			if code != 0 || strings.Contains(stdout, "\x1b[") != test.want {
				t.Errorf("exit code %d, %s\n%q", code, stderr, stdout)
			}
		})
	}
}

// TestDataIsNeverColoured: programs read it.
func TestDataIsNeverColoured(t *testing.T) {
	stdout, _, code := execute(t, t.Context(), []string{"CLICOLOR_FORCE=1"}, "envelope", "../../manifests/examples/seed-benchreport.json", "-o", "json")
	if code != 0 || strings.Contains(stdout, "\x1b") {
		t.Errorf("exit code %d: %.200q", code, stdout)
	}
}

func TestWarnings(t *testing.T) {
	var errs bytes.Buffer
	w := &warnings{streams: term.New(nil, io.Discard, &errs, nil), said: map[string]bool{}}
	w.HandleWarningHeader(299, "-", "v1beta1 is deprecated")
	w.HandleWarningHeader(299, "-", "v1beta1 is deprecated")
	w.HandleWarningHeader(299, "-", "")
	w.HandleWarningHeader(199, "-", "other")
	if errs.String() != "warning: v1beta1 is deprecated\n" {
		t.Errorf("standard error %q", errs.String())
	}
}
