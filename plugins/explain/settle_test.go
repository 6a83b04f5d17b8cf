package explain

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// settling is a workload with one metric of a total, drawn.
func settling(g *rand.Rand) hpa.Input {
	size := int32(1 + g.IntN(8))
	in := hpa.Input{
		Version: hpa.Version{Major: 1, Minor: 37}, Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Min: 1, Max: 12,
		Replicas: hpa.Replicas{Spec: size, Status: hpa.Exactly(size), Ready: hpa.Exactly(int32(g.IntN(20)))},
		Metrics:  []hpa.Metric{{Type: hpa.External, Name: "s0-prometheus", Target: hpa.AverageValue, TargetMilli: int64(1 + g.IntN(6))}},
		Rescales: &hpa.Rescales{},
	}
	if g.IntN(3) == 0 {
		in.Metrics[0].Target = hpa.Value
	}
	if g.IntN(2) == 0 {
		rules := hpa.Rules{Select: hpa.SelectMax, Policies: []hpa.Policy{{Type: hpa.PodsPolicy, Value: int32(1 + g.IntN(3)), Period: 30 * time.Second}}}
		in.Behavior = &hpa.Behavior{Up: rules, Down: rules}
	}
	return in
}

// TestSettledBetweenTheEnds: where the size goes with any total of a range is
// among where it is said to go.
func TestSettledBetweenTheEnds(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	withTotal := func(in hpa.Input, total int64) hpa.Input {
		in.Metrics = []hpa.Metric{in.Metrics[0]}
		in.Metrics[0].Seen = hpa.Observation{State: hpa.Seen, Total: &total}
		return in
	}
	for range 2_000 {
		in, low := settling(g), g.Int64N(40)
		high := low + g.Int64N(12)
		both := settleBoth(withTotal(in, low), withTotal(in, high), hpa.DefaultSyncPeriod)
		for total := low; both != nil && total <= high; total++ {
			one := settle(withTotal(in, total), hpa.DefaultSyncPeriod)
			if got := one.Replicas.Low; got < both.Replicas.Low || got > *both.Replicas.High {
				t.Fatalf("with %d of %d to %d it goes to %d, not to %d to %d: %+v", total, low, high, got, both.Replicas.Low, *both.Replicas.High, in)
			}
		}
	}
}

// TestSettlesAtTheControllersPace: with a sync a minute, doubling takes minutes.
func TestSettlesAtTheControllersPace(t *testing.T) {
	total := int64(64)
	in := hpa.Input{
		Version: hpa.Version{Major: 1, Minor: 37}, Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Min: 1, Max: 64,
		Replicas: hpa.Replicas{Spec: 1, Status: hpa.Exactly(1), Ready: hpa.Exactly(1)},
		Metrics:  []hpa.Metric{{Type: hpa.External, Target: hpa.AverageValue, TargetMilli: 1, Seen: hpa.Observation{State: hpa.Seen, Total: &total}}},
	}
	for period, want := range map[time.Duration]float64{15 * time.Second: 60, time.Minute: 240} {
		if got := settle(in, period); got == nil || got.AfterSeconds != want {
			t.Errorf("every %v: got %+v, want %v s", period, got, want)
		}
	}
}
