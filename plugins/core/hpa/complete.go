package hpa

import "math"

// Complete is a proposal under an assumption that no status can prove: that
// every pod had a sample.
type Complete struct {
	Count Range
	// Pods is how many had a sample that counts.
	Pods int32
	// Plain says that Count is the ratio times Pods, rounded up: no pod that
	// starts is taken to use nothing.
	Plain bool
}

// complete is what a metric of pods asks for if every pod that ran had a sample,
// and if there were as many as the size says where the pods are not known; nil
// where the proposal needs no such assumption, or where it is of no help.
func (in Input) complete(p Proposal) *Complete {
	metric := p.Metric
	switch {
	case metric.Seen.Complete:
		return nil
	case p.Reason == PodsUnknown && in.Pods == nil:
		size := in.Replicas.Spec
		return &Complete{Exactly(sizeOf(math.Ceil(p.Ratio * float64(size)))), size, true}
	case p.Reason != PodsUncertain:
		return nil
	}
	metric.Seen.Complete = true
	with := Proposal{Metric: metric, Count: AnyCount(), Ratio: math.NaN()}
	in.perPod(&with)
	if with.Groups == nil || !with.Groups.Counted.Exact() {
		return nil
	}
	pods := with.Groups.Counted.Low
	plain := with.Ratio <= 1 || with.Groups.Unready == Exactly(0)
	return &Complete{with.Count, pods, plain && with.Count == Exactly(sizeOf(math.Ceil(with.Ratio*float64(pods))))}
}
