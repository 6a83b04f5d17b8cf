package hpa

import (
	"testing"
	"time"
)

// seeds are the rules of the inference platform: double every 30 s after a
// minute, a quarter down every minute after five.
func seeds() *Behavior {
	return &Behavior{
		Up:   Rules{Window: ptr(time.Minute), Select: SelectMax, Policies: []Policy{{PercentPolicy, 100, 30 * time.Second}}},
		Down: Rules{Window: ptr(5 * time.Minute), Select: SelectMax, Policies: []Policy{{PercentPolicy, 25, time.Minute}}},
	}
}

func recommended(ago time.Duration, sizes ...int32) *History {
	history := &History{}
	for _, size := range sizes {
		history.Recommendations = append(history.Recommendations, Recommendation{start.Add(-ago), size})
	}
	return history
}

func TestStabilization(t *testing.T) {
	tests := map[string]struct {
		in      Input
		count   int32
		reason  AbleReason
		desired int32
	}{
		// Without a behavior an older recommendation raises even the size.
		"old size returns after a manual step down":      {with(at(5, external(6000, 2000)), func(in *Input) { in.History = recommended(time.Minute, 8) }), 8, ScaleDownStabilized, 8},
		"with a behavior it is only held":                {with(at(5, external(6000, 2000)), func(in *Input) { in.History, in.Behavior = recommended(time.Minute, 8), seeds() }), 5, ScaleDownStabilized, 5},
		"as old as the window counts without a behavior": {with(at(5, external(2000, 2000)), func(in *Input) { in.History = recommended(300*time.Second, 5) }), 5, ScaleDownStabilized, 5},
		"as old as the window is out with a behavior":    {with(at(5, external(2000, 2000)), func(in *Input) { in.History, in.Behavior = recommended(300*time.Second, 5), seeds() }), 1, ReadyForNewScale, 3},
		"up window holds":                                {with(at(1, external(11000, 2000)), func(in *Input) { in.History, in.Behavior = recommended(30*time.Second, 1), seeds() }), 1, ScaleUpStabilized, 1},
		"up window lets pass 2":                          {with(at(1, external(11000, 2000)), func(in *Input) { in.History, in.Behavior = recommended(30*time.Second, 2), seeds() }), 2, ScaleUpStabilized, 2},
		"nothing to hold":                                {with(at(2, external(4000, 2000)), func(in *Input) { in.Behavior = seeds() }), 2, ReadyForNewScale, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.in)
			if d.Stabilization.Count != Exactly(test.count) || d.Stabilization.Reason != test.reason || d.Desired != Exactly(test.desired) {
				t.Errorf("got %v %s, desired %v", d.Stabilization.Count, d.Stabilization.Reason, d.Desired)
			}
		})
	}
}

// TestPolicyArithmetic holds the float order of the limits: the results differ
// from exact arithmetic.
func TestPolicyArithmetic(t *testing.T) {
	tests := map[string]struct {
		size, percent, up, down int32
	}{
		"50 at 10":  {50, 10, 56, 45},
		"100 at 10": {100, 10, 111, 90},
		"10 at 10":  {10, 10, 11, 9},
		"10 at 90":  {10, 90, 19, 0},
		"10 at 80":  {10, 80, 18, 1},
		"5 at 50":   {5, 50, 8, 2},
		"1 at 50":   {1, 50, 2, 0},
		"6 at 25":   {6, 25, 8, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(test.size)
			rules := Rules{Select: SelectMax, Policies: []Policy{{PercentPolicy, test.percent, time.Minute}}}
			in.Behavior = &Behavior{Up: rules, Down: rules}
			up, down := in.policyLimits()
			if up != Exactly(test.up) || down != Exactly(test.down) {
				t.Errorf("got up %v down %v, want %d and %d", up, down, test.up, test.down)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	pods := func(n int32, period time.Duration) Rules {
		return Rules{Window: ptr(time.Duration(0)), Select: SelectMax, Policies: []Policy{{PodsPolicy, n, period}}}
	}
	tests := map[string]struct {
		in     Input
		want   int32
		reason LimitReason
	}{
		"no behavior: four at first":      {at(1, external(100_000, 2000)), 4, ScaleUpLimit},
		"no behavior: then double":        {at(8, external(100_000, 2000)), 16, ScaleUpLimit},
		"maximum":                         {with(at(8, external(100_000, 2000)), func(in *Input) { in.Max = 10 }), 10, TooManyReplicas},
		"minimum":                         {with(at(3, external(0, 2000)), func(in *Input) { in.Min = 2 }), 2, TooFewReplicas},
		"behavior up":                     {with(at(2, external(11000, 2000)), func(in *Input) { in.Behavior = seeds() }), 4, ScaleUpLimit},
		"behavior down":                   {with(at(6, external(0, 2000)), func(in *Input) { in.Behavior = seeds() }), 4, ScaleDownLimit},
		"keda#4204 a policy is a ceiling": {with(at(2, external(144_000, 65_000)), func(in *Input) { in.Behavior = &Behavior{Up: pods(2, 15*time.Second), Down: pods(1, time.Minute)} }), 3, DesiredWithinRange},
		"disabled down":                   {with(at(6, external(0, 2000)), func(in *Input) { in.Behavior = seeds(); in.Behavior.Down.Select = SelectDisabled }), 6, ScaleDownLimit},
		"kubernetes#108354 both directions": {with(at(6, external(100_000, 2000)), func(in *Input) {
			in.Behavior = &Behavior{Up: pods(4, time.Minute), Down: pods(4, time.Minute)}
			in.Rescales = &Rescales{Up: []Rescale{{Time: start.Add(-40 * time.Second), Delta: Exactly(4)}}, Down: []Rescale{{Time: start.Add(-20 * time.Second), Delta: Exactly(2)}}}
		}), 8, ScaleUpLimit},
		"an event as old as the period is out": {with(at(4, external(100_000, 2000)), func(in *Input) {
			in.Behavior = seeds()
			in.Rescales = &Rescales{Up: []Rescale{{Time: start.Add(-30 * time.Second), Delta: Exactly(2)}}}
		}), 8, ScaleUpLimit},
		"smaller of two policies": {with(at(10, external(100_000, 2000)), func(in *Input) {
			rules := Rules{Window: ptr(time.Duration(0)), Select: SelectMin, Policies: []Policy{{PodsPolicy, 4, time.Minute}, {PercentPolicy, 10, time.Minute}}}
			in.Behavior = &Behavior{Up: rules, Down: rules}
		}), 11, ScaleUpLimit},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.in)
			if d.Desired != Exactly(test.want) || d.Limit.Reason != test.reason {
				t.Errorf("got %v %s, want %d %s", d.Desired, d.Limit.Reason, test.want, test.reason)
			}
		})
	}
}

func TestHiddenMemoryGivesBounds(t *testing.T) {
	unknown := func(in *Input) { in.Behavior, in.History, in.Rescales = seeds(), nil, nil }
	up := Decide(with(at(2, external(11000, 2000)), unknown))
	if up.Desired != (Range{2, 6}) || up.Stabilization.Known || up.Limit.Known {
		t.Errorf("up: got %v, %+v, %+v", up.Desired, up.Stabilization, up.Limit)
	}
	down := Decide(with(at(6, external(2000, 2000)), unknown))
	if down.Desired != (Range{1, 6}) {
		t.Errorf("down: got %v", down.Desired)
	}
	rest := Decide(with(at(2, external(4000, 2000)), unknown))
	if rest.Desired != Exactly(2) {
		t.Errorf("at rest nothing hidden matters: got %v", rest.Desired)
	}
}

func TestEdges(t *testing.T) {
	tests := map[string]struct {
		in          Input
		add, remove *int64
	}{
		"kv of the platform at 1": {at(1, external(400, 750)), ptr(int64(826)), nil},
		"kv at 2":                 {at(2, external(800, 750)), ptr(int64(1651)), ptr(int64(750))},
		"kv at 3":                 {at(3, external(2000, 750)), ptr(int64(2476)), ptr(int64(1500))},
		"queue at 10 up to 1.32":  {with(at(10, external(40000, 4000)), func(in *Input) { in.Version = Version{1, 32} }), ptr(int64(44000)), ptr(int64(35999))},
		"at the maximum":          {with(at(6, external(2000, 2000)), func(in *Input) { in.Max = 6 }), nil, ptr(int64(10000))},
		"value":                   {at(4, whole(30000, 30000)), ptr(int64(33001)), ptr(int64(22500))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			edges := Decide(test.in).Proposals[0].Edges
			if !equal(edges.Add, test.add) || !equal(edges.Remove, test.remove) {
				t.Errorf("got add %v remove %v, want %v and %v", text(edges.Add), text(edges.Remove), text(test.add), text(test.remove))
			}
		})
	}
}

func equal(a, b *int64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func text(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}
