package hpa

// Edges are the totals, in thousandths, at which one metric alone changes the
// size: the inverse of its proposal, tolerance and rounding included. Of a
// metric of pods they are averages (of a utilization percents, times 1000), for
// the pods that run now, each with a sample.
type Edges struct {
	// Add is the smallest total that asks for more than the current size; nil
	// at the maximum, or where it cannot be said.
	Add *int64
	// Remove is the largest total that asks for less; nil at the minimum, or
	// where no total does.
	Remove *int64
}

// largestTotal bounds the search; no metric that a person reads is larger.
const largestTotal = int64(1) << 60

func (in Input) edges(p Proposal) Edges {
	total, target := p.Metric.TargetMilli, p.Metric.TargetMilli
	if target <= 0 || in.Replicas.Spec <= 0 {
		return Edges{}
	}
	ofPods := p.Metric.Type != External && p.Metric.Type != Object
	var propose func(total int64) int32
	// Below its target a Value metric never adds, above it never removes on
	// account of its value: with pods that are not Ready the proposal is not
	// monotone across the tolerance.
	floor, ceiling := int64(0), largestTotal
	unit := int64(1)
	switch {
	case ofPods:
		counted := in.steady(p.Metric)
		if counted == 0 {
			return Edges{}
		}
		propose = func(average int64) int32 {
			n, _ := in.whole(average, target, counted)
			return n
		}
		floor, ceiling = target, target
		if p.Metric.Target == Utilization {
			unit = 1000
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
		floor, ceiling = target, target
	default:
		return Edges{}
	}
	var edges Edges
	spec := in.Replicas.Spec
	if spec < in.Max {
		more := func(total int64) bool { return propose(total) > spec }
		high := max(floor, total)
		for high < largestTotal && !more(high) {
			high *= 2
		}
		if more(high) {
			at := firstTrue(floor, high, more) * unit
			edges.Add = &at
		}
	}
	if spec > in.Min {
		enough := func(total int64) bool { return propose(total) >= spec }
		high := min(ceiling, total)
		for high < ceiling && high < largestTotal && !enough(high) {
			high *= 2
		}
		if enough(high) {
			if at := (firstTrue(0, high, enough) - 1) * unit; at >= 0 {
				edges.Remove = &at
			}
		}
	}
	return edges
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
