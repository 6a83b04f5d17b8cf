package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// TestMain lets the test program be the command.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_IS_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var stdout bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TEST_IS_COMMAND=1")
	cmd.Stdout = &stdout
	return cmd, &stdout
}

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"version":    {[]string{"version"}, 0},
		"no plan":    {[]string{"sync"}, 2},
		"no command": {nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stdout := command(t, test.args...)
			err := cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != test.code || stdout.Len() == 0 {
				t.Errorf("exit code %d, error %v: %s", code, err, stdout.String())
			}
		})
	}
}

// TestSIGTERM: a pod that is removed says so, and says it last.
func TestSIGTERM(t *testing.T) {
	working := make(chan struct{}, 10)
	hub := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		working <- struct{}{}
		<-request.Context().Done()
	}))
	defer hub.Close()
	cmd, stdout := command(t, "sync")
	words := filepath.Join(t.TempDir(), "termination-log")
	plan := fmt.Sprintf(`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"SyncPlan","repo":"a/b","revision":"main","hub_endpoint":%q,"destination":"s3://models/a","s3_endpoint":%q,"s3_region":"x"}`, hub.URL, hub.URL)
	cmd.Env = append(cmd.Env, "INFERENCE_PLAN="+plan, "TERMINATION_MESSAGE="+words, "HF_TOKEN=hf_secret", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=very-secret")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-working
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("error %v: %s", err, stdout.String())
	}
	last, err := os.ReadFile(words)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	for what, line := range map[string]string{"log": lines[len(lines)-1], "termination message": string(last)} {
		if event, ok := record.ParseEvent([]byte(line)); !ok || event.Name != record.EventFailed || event.Message != "stopped by a signal" || event.ExitCode != 130 {
			t.Errorf("the %s ends with %s", what, line)
		}
	}
	if strings.Contains(stdout.String()+string(last), "secret") {
		t.Errorf("a secret is told: %s", stdout.String())
	}
}
