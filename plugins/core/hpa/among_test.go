package hpa

import (
	"math/rand/v2"
	"testing"
)

// TestBetweenTheEnds: 2.1 times the target proposes 3 with one replica and with
// three, and keeps two as they are.
func TestBetweenTheEnds(t *testing.T) {
	in := at(2, external(2100, 1000))
	in.Replicas.Status = Range{1, 3}
	if got := Decide(in).Proposals[0]; got.Count != (Range{2, 3}) || got.Reason != Rounding {
		t.Errorf("got %v %s", got.Count, got.Reason)
	}
	// 17 of 20 pods, 24 of them, or the ten that there are.
	in = at(10, whole(850, 1000))
	in.Metrics[0].Seen.Most, in.Replicas.Ready = ptr(int64(1200)), Exactly(20)
	if got := Decide(in).Proposals[0]; got.Count != (Range{10, 24}) || got.Reason != Rounding {
		t.Errorf("got %v %s", got.Count, got.Reason)
	}
}

// TestBoundsContainEachValue goes through every value of ranges: what is
// proposed, made of it in each step and decided with any of them lies in the
// bounds that the ranges give.
func TestBoundsContainEachValue(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 8))
	var compared int
	for range 6_000 {
		in := randomInput(g)
		in.Metrics = in.Metrics[:1]
		metric := &in.Metrics[0]
		if metric.Seen.State != Seen {
			continue
		}
		metric.TargetMilli = int64(1 + g.IntN(12))
		total := g.Int64N(80)
		metric.Seen.Total = &total
		in.Replicas.Status, in.Replicas.Ready = rangeIn(g, 1, 9), rangeIn(g, 0, 14)
		if g.IntN(2) == 0 {
			in.Replicas.Status = Exactly(in.Replicas.Status.Low)
		}
		blurRescales(g, in.Rescales)
		seen := []Observation{metric.Seen}
		switch {
		case g.IntN(3) == 0:
			metric.Seen.Most = ptr(total + g.Int64N(30))
		case metric.Target == AverageValue:
			metric.Seen = Observation{State: Seen, Average: ptr(int64(g.IntN(14)))}
		}
		bounds := Decide(in)
		for status := in.Replicas.Status.Low; status <= in.Replicas.Status.High; status++ {
			seen = seen[:0]
			low, high, _ := metric.Seen.totals(Exactly(status))
			for n := max(0, low); n <= high; n++ {
				seen = append(seen, Observation{State: Seen, Total: ptr(n)})
			}
			for ready := in.Replicas.Ready.Low; ready <= in.Replicas.Ready.High; ready++ {
				for _, one := range seen {
					exact := in
					exact.Replicas.Status, exact.Replicas.Ready = Exactly(status), Exactly(ready)
					exact.Metrics = []Metric{*metric}
					exact.Metrics[0].Seen = one
					exact.Rescales = sharpRescales(g, in.Rescales)
					holds(t, bounds, Decide(exact))
					compared++
				}
			}
		}
	}
	if compared < 100_000 {
		t.Errorf("only %d values", compared)
	}
}

func rangeIn(g *rand.Rand, low, high int) Range {
	a, b := low+g.IntN(high-low), low+g.IntN(high-low)
	return Range{int32(min(a, b)), int32(max(a, b))}
}

func blurRescales(g *rand.Rand, rescales *Rescales) {
	for _, list := range [][]Rescale{rescales.Up, rescales.Down} {
		for i := range list {
			list[i].Delta.High += int32(g.IntN(3))
		}
	}
}

// sharpRescales takes one value of each range.
func sharpRescales(g *rand.Rand, rescales *Rescales) *Rescales {
	sharp := func(list []Rescale) (out []Rescale) {
		for _, r := range list {
			r.Delta = Exactly(r.Delta.Low + int32(g.IntN(int(r.Delta.High-r.Delta.Low)+1)))
			out = append(out, r)
		}
		return out
	}
	return &Rescales{Up: sharp(rescales.Up), Down: sharp(rescales.Down)}
}

func holds(t *testing.T, bounds, exact Decision) {
	t.Helper()
	check := func(what string, r, n Range) {
		if !r.Contains(n.Low) || !n.Exact() {
			t.Fatalf("%s %v does not contain %v\nbounds %+v\nexact  %+v", what, r, n, bounds, exact)
		}
	}
	check("proposal", bounds.Proposals[0].Count, exact.Proposals[0].Count)
	check("desired", bounds.Desired, exact.Desired)
	if exact.Stabilization != nil {
		check("raw", bounds.Raw, exact.Raw)
		check("stabilized", bounds.Stabilization.Count, exact.Stabilization.Count)
		check("limit", bounds.Limit.Count, exact.Limit.Count)
	}
	if bounds.Proposals[0].Reason != Rounding && bounds.Proposals[0].Reason != exact.Proposals[0].Reason {
		t.Fatalf("reason %s, not %s\n%+v", bounds.Proposals[0].Reason, exact.Proposals[0].Reason, exact)
	}
	for _, one := range []struct{ bounds, exact string }{
		{string(bounds.Active), string(exact.Active)},
	} {
		if one.bounds != "" && one.bounds != one.exact {
			t.Fatalf("%s, not %s", one.bounds, one.exact)
		}
	}
	if s := bounds.Stabilization; s != nil && s.Reason != "" && s.Reason != exact.Stabilization.Reason {
		t.Fatalf("stabilization %s, not %s\n%+v", s.Reason, exact.Stabilization.Reason, exact)
	}
	if l := bounds.Limit; l != nil && l.Reason != "" && l.Reason != exact.Limit.Reason {
		t.Fatalf("limit %s, not %s\n%+v", l.Reason, exact.Limit.Reason, exact)
	}
	if bounds.Winner != NoWinner && exact.Winner != bounds.Winner {
		t.Fatalf("winner %d, not %d", bounds.Winner, exact.Winner)
	}
}

// TestRefilledBetweenItsEnds: what pods without samples may have used, between
// two ratios, gives nothing beyond what the two give.
func TestRefilledBetweenItsEnds(t *testing.T) {
	g := rand.New(rand.NewPCG(9, 10))
	for range 20_000 {
		in := at(int32(1 + g.IntN(12)))
		in.Version = Version{1, 27 + g.IntN(12)}
		first, pods := float64(g.IntN(40))/16, 1+g.IntN(14)
		a, b := g.IntN(48), g.IntN(48)
		low, high := min(a, b), max(a, b)
		if first == 1 {
			// Only idle pods are filled in there.
			low, high = min(low, 16), min(high, 16)
		}
		one, _ := in.refilled(first, float64(low)/16, pods)
		other, _ := in.refilled(first, float64(high)/16, pods)
		for n := low; n <= high; n++ {
			if got, _ := in.refilled(first, float64(n)/16, pods); !span(one, other).Contains(got) {
				t.Fatalf("first %v, %d of %d to %d sixteenths, %d pods, size %d: %d is not in %v", first, n, low, high, pods, in.Replicas.Spec, got, span(one, other))
			}
		}
	}
}
