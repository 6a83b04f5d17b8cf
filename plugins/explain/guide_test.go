package explain

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// TestGuide runs every command line of the guide, in the directory of the saved
// objects, and looks for the output that it shows.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata")
	lines, shown := 0, ""
	for _, block := range regexp.MustCompile("(?s)```(sh|text)\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		if block[1] == "text" {
			if !strings.Contains(shown, block[2]) {
				t.Errorf("the output is not\n%s\nbut\n%s", block[2], shown)
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			words := shellWords(strings.TrimSpace(line))
			if len(words) < 4 || strings.Join(words[:3], " ") != "kubectl inference explain-scaling" {
				t.Fatalf("not a command of this guide: %q", line)
			}
			stdout, stderr, err := run(t, "", words[3:]...)
			if failure.KindOf(err) == failure.Differs {
				// A lint that finds something says so.
				err = nil
			}
			if err != nil || stderr != "" || strings.TrimSpace(stdout) == "" {
				t.Errorf("%s: %v %s", line, err, stderr)
			}
			lines, shown = lines+1, stdout
		}
	}
	if lines < 12 {
		t.Errorf("ran %d lines", lines)
	}
}

// shellWords splits a line as a shell does that knows single quotes only.
func shellWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`(?:'[^']*'|[^\s'])+`).FindAllString(line, -1) {
		words = append(words, strings.ReplaceAll(word, "'", ""))
	}
	return words
}
