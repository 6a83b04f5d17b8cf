package hpa

import (
	"math"
	"slices"
)

// The tolerance makes proposals jump: between two values that are out of it lie
// others that keep the size as it is. So the ends of what is known do not bound
// the proposals of all that lies between, and every step of it is looked at.

// mostSizes is how many sizes are gone through one by one.
const mostSizes = 4096

// perReplicaAmong bounds the proposals of a metric with a target per replica for
// all sizes in status, each with the totals that are possible with it. With one
// size the proposal only grows with the total.
func (in Input) perReplicaAmong(metric Metric, status Range) (Range, ProposalReason) {
	target := metric.TargetMilli
	if metric.Seen.Total == nil {
		// An average was made with some replica.
		status.Low = max(status.Low, 1)
	}
	if int64(status.High)-int64(status.Low) > mostSizes {
		low, high, _ := in.totalsSeen(metric, status)
		// The size itself, or what the target divides the total into.
		return span(status.Low, status.High, share(low, target), share(high, target)), Rounding
	}
	count, ratios := Range{math.MaxInt32, math.MinInt32}, between{}
	for size := status.Low; ; size++ {
		low, high, _ := in.totalsSeen(metric, Exactly(size))
		first, ratio := in.perReplica(low, target, size)
		last, lastRatio := in.perReplica(high, target, size)
		count = count.or(span(first, last))
		ratios.see(ratio)
		ratios.see(lastRatio)
		if size >= status.High {
			return count, in.reason(ratios.low, ratios.high)
		}
	}
}

// wholeAmong bounds the proposals of a metric with a target of the total, for
// all totals from low to high and all numbers of Ready pods.
func (in Input) wholeAmong(low, high, target int64, ready Range) (Range, ProposalReason) {
	_, lowRatio := in.whole(low, target, ready.Low)
	_, highRatio := in.whole(high, target, ready.Low)
	count := Range{math.MaxInt32, math.MinInt32}
	for _, total := range in.Turns(target, low, high) {
		first, _ := in.whole(total, target, ready.Low)
		last, _ := in.whole(total, target, ready.High)
		count = count.or(span(first, last))
	}
	return count, in.reason(lowRatio, highRatio)
}

// Turns are the totals between which the proposal of a metric with a target of
// the total only grows: the ends, the last total below the tolerance, the first
// and the last one in it, and the first one above.
func (in Input) Turns(target, low, high int64) []int64 {
	totals := []int64{low, high}
	reason := func(total int64) ProposalReason {
		ratio := float64(total) / float64(target)
		return in.reason(ratio, ratio)
	}
	for _, passed := range []func(int64) bool{
		func(total int64) bool { return reason(total) != BelowTarget },
		func(total int64) bool { return reason(total) == AboveTarget },
	} {
		if low < high && !passed(low) && passed(high) {
			edge := firstTrue(low, high, passed)
			totals = append(totals, edge-1, edge)
		}
	}
	slices.Sort(totals)
	return slices.Compact(totals)
}

// totalsSeen bounds the total that the controller went on with.
func (in Input) totalsSeen(metric Metric, status Range) (low, high int64, ok bool) {
	low, high, ok = metric.Seen.totals(status)
	switch {
	case metric.Seen.Total == nil && metric.Type == External:
		low = max(low, min(high, 0))
	case metric.Seen.Total == nil:
	case low < 0 && high >= 0 && in.summed(metric, low) != low:
		// A negative sum is taken for the largest number there is.
		low, high = 0, math.MaxInt64
	default:
		low, high = in.summed(metric, low), in.summed(metric, high)
	}
	return low, high, ok
}

func share(total, target int64) int32 { return sizeOf(math.Ceil(float64(total) / float64(target))) }

// between is an interval of ratios; one that is no number is passed over unless
// there is no other.
type between struct {
	low, high float64
	any       bool
}

func (b *between) see(ratio float64) {
	switch {
	case !b.any || math.IsNaN(b.low):
		b.low, b.high, b.any = ratio, ratio, true
	case !math.IsNaN(ratio):
		b.low, b.high = min(b.low, ratio), max(b.high, ratio)
	}
}
