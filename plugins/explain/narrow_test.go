package explain

import (
	"io"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// TestNarrowScan: a long reason is cut, not wrapped.
func TestNarrowScan(t *testing.T) {
	var text strings.Builder
	plain := term.New(nil, &text, io.Discard, nil).Out
	chain := document(t, "-f", "testdata/one-broken.yaml").Chains[0]
	severity, summary, _ := judge(chain)
	scan := record.ScalingScan{Items: []record.ScannedChain{
		{Namespace: "models", Target: scannedTarget(chain), Severity: severity, Summary: summary, Chain: chain},
		{Namespace: "models", Target: "so/x", Severity: record.SeverityNone, Summary: "stay at 1", Chain: document(t, "-f", "testdata/zero.yaml").Chains[0]},
	}}
	if err := renderScan(plain, scan, 80); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "scan-80.golden", text.String())
	for line := range strings.Lines(text.String()) {
		if lipgloss.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too wide: %q", line)
		}
	}
}

// TestNarrow: in 80 columns nothing is lost and no line is wider.
func TestNarrow(t *testing.T) {
	for _, name := range []string{"waiting", "one-broken"} {
		var text strings.Builder
		plain := term.New(nil, &text, io.Discard, nil).Out
		if err := render(plain, document(t, "-f", "testdata/"+name+".yaml"), 80); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, name+"-80.golden", text.String())
		for line := range strings.Lines(text.String()) {
			if lipgloss.Width(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("too wide: %q", line)
			}
		}
	}
}

// TestVeryNarrow: on a telephone's terminal too no line is wider than the
// screen, nothing is lost, and a table that does not fit is no table.
func TestVeryNarrow(t *testing.T) {
	for _, width := range []int{80, 60, 40, 24} {
		for _, name := range []string{"window-up", "cooldown", "all-broken", "composite"} {
			explanation := document(t, "-f", "testdata/lab/"+name+".yaml", "--set", "replicas=3", "--set", "max=4")
			var text, whole strings.Builder
			if err := render(term.New(nil, &text, io.Discard, nil).Out, explanation, width); err != nil {
				t.Fatal(err)
			}
			if err := render(term.New(nil, &whole, io.Discard, nil).Out, explanation, 0); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text.String()) {
				if lipgloss.Width(strings.TrimSuffix(line, "\n")) > width {
					t.Errorf("%s at %d: too wide: %q", name, width, line)
				}
			}
			together := strings.Join(strings.Fields(text.String()), "")
			for _, word := range strings.Fields(whole.String()) {
				if word != "WHY" && !strings.Contains(strings.ToLower(together), strings.ToLower(word)) {
					t.Errorf("%s at %d: lost %q", name, width, word)
				}
			}
		}
	}
	var text strings.Builder
	if err := render(term.New(nil, &text, io.Discard, nil).Out, document(t, "-f", "testdata/lab/window-up.yaml", "--set", "max=4"), 40); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "window-up-40.golden", text.String())
}
