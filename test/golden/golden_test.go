package golden_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// recorder is a test that only notes how it failed.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestCompareTellsDifferences(t *testing.T) {
	golden.Compare(t, "same.txt", "as a person saw it\n")
	other := &recorder{TB: t}
	golden.Compare(other, "same.txt", "otherwise\n")
	if len(other.failures) != 1 || !strings.Contains(other.failures[0], "otherwise") {
		t.Errorf("another text: %q", other.failures)
	}
}
