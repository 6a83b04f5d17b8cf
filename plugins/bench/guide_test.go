package bench

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

// TestGuide runs the command lines of the guide: those with --local against an
// engine, for a second; those that start a Job as plans of the same URL. Of
// those that need a run to be there, it looks for the command.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Abs("../../manifests/examples/bench")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(files)
	lines := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			words := strings.Fields(line)
			if strings.Join(words[:3], " ") == "kubectl inference envelope" {
				continue
			}
			if len(words) < 4 || strings.Join(words[:3], " ") != "kubectl inference bench" {
				t.Fatalf("not a command of this guide: %q", line)
			}
			lines++
			args := words[3:]
			switch {
			case slices.Contains([]string{"attach", "list", "get", "cancel"}, args[0]):
				if got := run(t, nil, append(args, "--help")...); got.err != nil || !strings.Contains(got.stdout, "bench "+args[0]) {
					t.Errorf("%s: %+v", line, got)
				}
			case slices.Contains(args, "--local"):
				args = append(args, "--url", local(t), "--warmup", "0.2s", "--duration", "1s", "-o", "csv")
				got := run(t, nil, args...)
				if got.err != nil || len(strings.Split(got.stdout, "\n")) < 3 || !strings.Contains(got.stdout, ",completed,") {
					t.Errorf("%s: %+v", line, got)
				}
			default:
				target := slices.Index(args, "isvc/chat")
				if target < 0 {
					t.Fatalf("no target: %q", line)
				}
				args = slices.Replace(slices.Clone(args), target, target+1, "--url", "http://gateway.example:8000")
				// What is held still is found in a cluster only.
				args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--hold-scaling=1" })
				if args[0] != "plan" {
					args = append(args, "--dry-run")
				}
				if got := run(t, nil, args...); got.err != nil || got.stdout == "" {
					t.Errorf("%s: %+v", line, got)
				}
			}
		}
	}
	if lines < 15 {
		t.Errorf("ran %d lines", lines)
	}
}

// local is the URL of an engine that is a hundred times as fast as its model.
func local(t *testing.T) string {
	t.Helper()
	server, err := engine.Start(t.Context(), engine.Config{Speed: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server.URL
}
