package stats_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

func TestLevel(t *testing.T) {
	var l stats.Level
	if l.Now() != 0 || l.Mean(0, 1) != 0 {
		t.Error("an empty level is not 0")
	}
	l.Change(+1, 1)
	l.Change(+2, 2)
	l.Change(-3, 4)
	l.Change(+1, 3) // the clock was read in the other order: it counts as 4
	if got := l.Now(); got != 1 {
		t.Errorf("now %v", got)
	}
	// 0 until 1, 1 until 2, 3 until 4, 1 after.
	parts, peak := l.Parts(0, 6, 6)
	if diff := cmp.Diff([]float64{0, 1, 3, 3, 1, 1}, parts); diff != "" || peak != 3 {
		t.Errorf("peak %v\n%s", peak, diff)
	}
	if got := l.Mean(1.5, 2.5); got != 2 {
		t.Errorf("mean %v", got)
	}
	if _, peak := l.Parts(4.5, 6, 1); peak != 1 {
		t.Errorf("later peak %v", peak)
	}
}
