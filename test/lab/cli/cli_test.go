package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/lab/cli"
)

// TestCommands is what the command line answers without a lab.
func TestCommands(t *testing.T) {
	const notUp = "hint: start it: lab up\n"
	tests := map[string]struct {
		args []string
		env  map[string]string
		// files are in the lab's directory before.
		files             map[string]string
		code              int
		stdout            string
		stderr            string
		stdoutHas, errHas string
	}{
		"help":                 {args: []string{"--help"}, stdoutHas: "LAB_KUBECONFIG"},
		"the inside is hidden": {args: []string{"nonsense"}, code: 1, errHas: "unknown command"},
		"status":               {args: []string{"status"}, code: 5, stderr: "error: find lab: it is not up\n" + notUp},
		"kubeconfig":           {args: []string{"kubeconfig"}, code: 5, stderr: "error: find kubeconfig: the lab is not up\n" + notUp},
		"exec":                 {args: []string{"exec", "--", "true"}, code: 5, stderr: "error: enter lab: it is not up\n" + notUp},
		"exec without command": {args: []string{"exec"}, code: 1, errHas: "requires at least 1 arg"},
		"down without a lab":   {args: []string{"down"}, stderr: "the lab is not up\n"},
		"down after a reboot":  {args: []string{"down"}, files: map[string]string{"run/init.json": `{"pid":1,"start":1,"boot":"another"}`}, stderr: "the lab is not up\n"},
		"check-clean":          {args: []string{"check-clean"}, stdout: "nothing is left: no state, process, mount or bridge\n"},
		"check-clean, not":     {args: []string{"check-clean"}, files: map[string]string{"kubeconfig": ""}, code: 3, errHas: "state "},
		"bad duration":         {args: []string{"up"}, env: map[string]string{"LAB_HPA_SYNC": "often"}, code: 2, errHas: "hint: a duration such as 5s\n"},
		"no such kubeconfig":   {args: []string{"up"}, env: map[string]string{"LAB_KUBECONFIG": "/nonexistent"}, code: 2, errHas: "error: read kubeconfig /nonexistent: "},
		"cluster does not answer": {
			args: []string{"up"}, env: map[string]string{"LAB_KUBECONFIG": "testdata/unreachable.kubeconfig"},
			code: 6, errHas: "error: reach cluster: ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tt.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			getenv := func(name string) string {
				if name == "LAB_DIR" {
					return dir
				}
				return tt.env[name]
			}
			var out, errOut bytes.Buffer
			code := cli.Main(t.Context(), cli.Environment{Out: &out, Err: &errOut, Getenv: getenv, Now: time.Now}, tt.args)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			check(t, "stdout", out.String(), tt.stdout, tt.stdoutHas)
			check(t, "stderr", errOut.String(), tt.stderr, tt.errHas)
		})
	}
}

// check compares an output with all of want, or with the part has.
func check(t *testing.T, stream, got, want, has string) {
	t.Helper()
	if has != "" {
		if !strings.Contains(got, has) {
			t.Errorf("%s %q lacks %q", stream, got, has)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", stream, diff)
	}
}
