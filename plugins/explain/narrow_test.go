package explain

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// TestNarrow: in 80 columns nothing is lost and no line is wider.
func TestNarrow(t *testing.T) {
	for _, name := range []string{"waiting", "one-broken"} {
		var text strings.Builder
		if err := render(&text, document(t, "-f", "testdata/"+name+".yaml"), 80); err != nil {
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
