package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test program be the command.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_IS_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestMainProgram(t *testing.T) {
	for name, test := range map[string]struct {
		called string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"as the plugin": {"kubectl-inference", []string{"--version"}, 0, "kubectl inference dev\n", ""},
		"bad input":     {"kubectl-inference", []string{"nonsense"}, 2, "", "error: run \"nonsense\""},
		// client-go logs a refused connection by itself: it must not show.
		"no cluster":        {"kubectl-inference", []string{"bench", "svc/x", "--image", "example.test/job:1", "--server", "http://127.0.0.1:1"}, 6, "", "error: find svc/x in namespace default: no answer from 127.0.0.1:1"},
		"kubectl completes": {"/some/where/kubectl_complete-inference", []string{"manif"}, 0, "manifests\t", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Args = append([]string{test.called}, test.args...)
			cmd.Env = append(os.Environ(), "TEST_IS_COMMAND=1", "KUBECONFIG="+t.TempDir()+"/absent")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != test.code || !strings.HasPrefix(stdout.String(), test.stdout) || !strings.HasPrefix(stderr.String(), test.stderr) {
				t.Errorf("error %v, standard output %q, standard error %q", err, stdout.String(), stderr.String())
			}
		})
	}
}
