package hpa

import "slices"

// Edges are the totals, in thousandths, at which one metric alone changes the
// size: the inverse of its proposal, tolerance and rounding included. Of a
// metric of pods they are averages (of a utilization percents, times 1000), for
// the pods that run now, each with a sample.
//
// With other Ready pods than the size says, the proposal is not monotone across
// the tolerance: then they are those next to the total that was seen.
type Edges struct {
	// Add is the smallest total, from the present one on, that asks for more than
	// the current size; where the present one does, the smallest of those around
	// it that do. It is nil at the maximum, where scaling up is disabled, and
	// where it cannot be said.
	Add *int64
	// Remove is likewise the largest total that asks for less; nil at the
	// minimum, where scaling down is disabled, beside a metric that failed, and
	// where no total does.
	Remove *int64
}

// largestTotal bounds the search; no metric that a person reads is larger.
const largestTotal = int64(1) << 60

// stretch is a range of totals, both ends included, in which a proposal only
// grows with the total.
type stretch struct{ low, high int64 }

func (in Input) edges(p Proposal) Edges {
	target := p.Metric.TargetMilli
	if target <= 0 || in.Replicas.Spec <= 0 {
		return Edges{}
	}
	whole := p.Metric.Type == External || p.Metric.Type == Object
	present, unit := target, int64(1)
	if p.TotalHigh != nil {
		present = *p.TotalHigh
	}
	var propose func(total int64) int32
	stretches := []stretch{{0, largestTotal}}
	switch {
	case !whole:
		counted := in.steady(p.Metric)
		if counted == 0 {
			return Edges{}
		}
		propose = func(average int64) int32 {
			n, _ := in.whole(average, target, counted)
			return n
		}
		stretches = in.around(target)
		switch seen := p.Metric.Seen; {
		case p.Metric.Target == Utilization:
			unit = 1000
			if seen.Utilization != nil {
				present = int64(*seen.Utilization)
			}
		case seen.Average != nil:
			present = *seen.Average
		}
	case p.Metric.Target == AverageValue && in.Replicas.Status.Exact() && in.Replicas.Status.Low > 0:
		propose = func(total int64) int32 {
			n, _ := in.perReplica(total, target, in.Replicas.Status.Low)
			return n
		}
	case p.Metric.Target == Value && in.Replicas.Ready.Exact() && in.Replicas.Ready.Low > 0:
		propose = func(total int64) int32 {
			n, _ := in.whole(total, target, in.Replicas.Ready.Low)
			return n
		}
		stretches = in.around(target)
	default:
		return Edges{}
	}
	var edges Edges
	if in.mayAdd() {
		edges.Add = in.adds(stretches, present, unit, propose)
	}
	if in.mayRemove() {
		edges.Remove = in.removes(stretches, present, unit, propose)
	}
	return edges
}

// around are the totals below the tolerance of a target and those above it: in
// the tolerance the size is kept.
func (in Input) around(target int64) []stretch {
	within := func(total int64) bool { return in.tolerances().within(float64(total) / float64(target)) }
	above := largestTotal
	if !within(above) {
		above = firstTrue(target, largestTotal, func(total int64) bool { return !within(total) })
	}
	return []stretch{{0, firstTrue(0, target, within) - 1}, {above, largestTotal}}
}

// mayAdd says whether any metric may add a replica at all.
func (in Input) mayAdd() bool {
	return in.Replicas.Spec < in.Max && (in.Behavior == nil || in.Behavior.Up.Select != SelectDisabled)
}

// mayRemove says whether any metric may remove a replica at all.
func (in Input) mayRemove() bool {
	return in.Replicas.Spec > in.Min && (in.Behavior == nil || in.Behavior.Down.Select != SelectDisabled)
}

// holdBesideFailed: beside a metric that failed no other one removes a replica.
func holdBesideFailed(proposals []Proposal) {
	for i := range proposals {
		for j, other := range proposals {
			if j != i && other.Reason == MetricFailed {
				proposals[i].Edges.Remove = nil
			}
		}
	}
}

func (in Input) adds(stretches []stretch, present, unit int64, propose func(int64) int32) *int64 {
	more := func(total int64) bool { return propose(total) > in.Replicas.Spec }
	for _, s := range stretches {
		if s.low > s.high || s.high < present || !more(s.high) {
			continue
		}
		at := firstTrue(s.low, s.high, more) * unit
		return &at
	}
	return nil
}

func (in Input) removes(stretches []stretch, present, unit int64, propose func(int64) int32) *int64 {
	enough := func(total int64) bool { return propose(total) >= in.Replicas.Spec }
	for _, s := range slices.Backward(stretches) {
		if s.low > s.high || s.low > present || enough(s.low) {
			continue
		}
		at := s.high
		if enough(s.high) {
			at = firstTrue(s.low, s.high, enough) - 1
		}
		if at *= unit; at >= 0 && at < largestTotal {
			return &at
		}
	}
	return nil
}

// steady counts the pods that run, 0 where some of them start or are not known.
func (in Input) steady(metric Metric) int32 {
	metric.Seen.Complete = true
	crowd, ok := in.crowdOf(metric)
	if !ok || in.Pods == nil || len(crowd.always)+len(crowd.starting)+len(crowd.either) > 0 {
		return 0
	}
	return int32(len(crowd.running))
}

// firstTrue returns the smallest n in [low, high] for which is holds; is is
// false up to there and true from there on, and holds at high.
func firstTrue(low, high int64, is func(int64) bool) int64 {
	for low < high {
		middle := low + (high-low)/2
		if is(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
