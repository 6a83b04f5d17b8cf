package hpa

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestEdgesByBruteForce tries each total around the present one. With fewer or
// more Ready pods than the size says the proposal is not monotone.
func TestEdgesByBruteForce(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 8))
	seen := map[string]int{}
	for range 4_000 {
		target := 1 + g.Int64N(40)
		total := g.Int64N(4 * target)
		metric := external(total, target)
		if g.IntN(3) > 0 {
			metric.Target = Value
		}
		in := at(1+g.Int32N(8), metric)
		in.Min, in.Version = g.Int32N(3), Version{1, 30 + g.IntN(8)}
		in.Replicas.Ready, in.Replicas.Status = Exactly(1+g.Int32N(10)), Exactly(1+g.Int32N(10))
		edges, spec := Decide(in).Proposals[0].Edges, in.Replicas.Spec
		propose := func(total int64) int32 {
			other := metric
			other.Seen.Total = &total
			return in.propose(other).Count.Low
		}
		var add, remove *int64
		top := 20 * target * int64(spec)
		more := func(total int64) bool { return propose(total) > spec }
		less := func(total int64) bool { return propose(total) < spec }
		from := total
		for ; from > 0 && more(from) && more(from-1); from-- {
		}
		for at := from; at <= top && add == nil; at++ {
			if more(at) {
				add = &at
			}
		}
		from = total
		for ; from < top && less(from) && less(from+1); from++ {
		}
		for at := from; at >= 0 && remove == nil && spec > in.Min; at-- {
			if less(at) {
				remove = &at
			}
		}
		if !equal(edges.Add, add) || !equal(edges.Remove, remove) {
			t.Fatalf("%s target %d total %d spec %d status %v ready %v min %d 1.%d: got add %v remove %v, want %v and %v", metric.Target, target, total, spec,
				in.Replicas.Status, in.Replicas.Ready, in.Min, in.Version.Minor, text(edges.Add), text(edges.Remove), text(add), text(remove))
		}
		if metric.Target == Value && remove != nil && *remove > target {
			seen["removes above the target"]++
		}
		if metric.Target == Value && add != nil && *add < target {
			seen["adds below the target"]++
		}
	}
	if seen["removes above the target"] < 20 || seen["adds below the target"] < 20 {
		t.Errorf("hardly any case that is not monotone: %v", seen)
	}
}

// TestNoEdge: where nothing may change the size, there is no value that does.
func TestNoEdge(t *testing.T) {
	disabled := func(change func(*Behavior)) func(*Input) {
		return func(in *Input) {
			in.Behavior = seeds()
			change(in.Behavior)
		}
	}
	tests := map[string]struct {
		in          Input
		add, remove bool
	}{
		"free":                                   {at(6, external(30_000, 5000)), true, true},
		"scaleUp disabled":                       {with(at(6, external(30_000, 5000)), disabled(func(b *Behavior) { b.Up.Select = SelectDisabled })), false, true},
		"scaleDown disabled":                     {with(at(6, external(30_000, 5000)), disabled(func(b *Behavior) { b.Down.Select = SelectDisabled })), true, false},
		"beside a failed one":                    {at(6, external(30_000, 5000), failing()), true, false},
		"beside one that fails for want of pods": {with(at(6, external(30_000, 5000), whole(30_000, 5000)), func(in *Input) { in.Pods = []corev1.Pod{} }), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			edges := Decide(test.in).Proposals[0].Edges
			if (edges.Add != nil) != test.add || (edges.Remove != nil) != test.remove {
				t.Errorf("got add %v remove %v", text(edges.Add), text(edges.Remove))
			}
		})
	}
}
