package sync

import (
	"math"
	"runtime/debug"
	"testing"
)

// The collector is told of the budget for the length of a run, and a limit that
// the user set stays.
func TestBoundGarbage(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for name, test := range map[string]struct{ before, during int64 }{
		"no limit":   {math.MaxInt64, 256<<20 + besideBuffers + 100*besideFile},
		"GOMEMLIMIT": {1 << 30, 1 << 30},
	} {
		debug.SetMemoryLimit(test.before)
		restore := boundGarbage(256<<20, 100)
		if got := debug.SetMemoryLimit(-1); got != test.during {
			t.Errorf("%s: the limit is %d, want %d", name, got, test.during)
		}
		restore()
		if got := debug.SetMemoryLimit(-1); got != test.before {
			t.Errorf("%s: the limit is %d after the run, want %d", name, got, test.before)
		}
	}
}
