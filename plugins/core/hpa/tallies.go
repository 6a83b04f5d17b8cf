package hpa

import "math"

// tallies is one way in which the pods may have counted in a sync, with bounds
// of the requests behind each number.
type tallies struct {
	counted, unready, missing                       int
	countedRequests, missingRequests, extraRequests bounds64
	// fixedRequests are those of pods that were unready for sure, allRequests
	// those of all pods that were not ignored.
	fixedRequests, allRequests int64
}

// bounded is the proposal for one way of counting; ok is false where the shown
// average cannot come from it.
func (in Input) bounded(p *Proposal, t tallies) (Range, bool) {
	first := p.Ratio
	usage := t.usage(p.Metric)
	requests := t.countedRequests
	if p.Metric.Target == Utilization {
		shown := int64(*p.Metric.Seen.Utilization)
		requests = requests.and(requestsBehind(usage, shown))
		usage = usage.and(bounds64{up(shown*requests.low, 100), (shown+1)*requests.high/100 + 1})
		if requests.empty() || usage.empty() || requests.high <= 0 {
			return Range{}, false
		}
	}
	zeroes := t.unready > 0 && first > 1
	if !zeroes && t.missing == 0 {
		if in.tolerances().within(first) {
			return Exactly(in.Replicas.Spec), true
		}
		return Exactly(sizeOf(math.Ceil(first * float64(t.counted)))), true
	}
	fill, fills := in.fill(p.Metric, first)
	pods := t.counted
	if fills {
		pods += t.missing
	}
	if zeroes {
		pods += t.unready
	}
	var second [2]float64
	if p.Metric.Target == Utilization {
		second = t.percents(usage, requests, first, fill, int32(p.Metric.TargetMilli))
	} else {
		filled := int64(0)
		if fills {
			filled = int64(t.missing) * fill(0)
		}
		target := float64(p.Metric.TargetMilli)
		second = [2]float64{
			float64((usage.low+filled)/int64(pods)) / target,
			float64((usage.high+filled)/int64(pods)) / target,
		}
	}
	low, _ := in.refilled(first, second[0], pods)
	high, _ := in.refilled(first, second[1], pods)
	return span(low, high), true
}

// usage bounds the sum behind the average that the status shows: it is
// truncated towards zero.
func (t tallies) usage(metric Metric) bounds64 {
	if metric.Seen.Average == nil {
		return bounds64{0, math.MaxInt64 / 1000}
	}
	average, n := *metric.Seen.Average, int64(t.counted)
	sum := bounds64{average * n, average * n}
	if average >= 0 {
		sum.high += n - 1
	}
	if average <= 0 {
		sum.low -= n - 1
	}
	return sum
}

// requestsBehind bounds the requests that a usage is so many whole percents of.
func requestsBehind(usage bounds64, percent int64) bounds64 {
	b := bounds64{0, math.MaxInt64}
	if usage.low > 0 && percent >= 0 {
		b.low = usage.low*100/(percent+1) + 1
	}
	if percent > 0 && usage.high < math.MaxInt64/1000 {
		b.high = usage.high * 100 / percent
	}
	return b
}

// percents bounds the ratio after the fill. Above the target all pods are in
// it, below it all but the unready ones.
func (t tallies) percents(usage, requests bounds64, first float64, fill func(int64) int64, target int32) [2]float64 {
	whole := bounds64{t.allRequests, t.allRequests}
	if first < 1 {
		whole.low -= t.fixedRequests + t.extraRequests.high
		whole.high -= t.fixedRequests + t.extraRequests.low
		absent := t.missingRequests.and(bounds64{whole.low - requests.high, whole.high - requests.low})
		// Each pod's fill is truncated on its own.
		usage.low += max(0, fill(max(0, absent.low))-int64(t.missing))
		usage.high += fill(max(0, absent.high))
	}
	ratio := func(usage, requests int64) float64 {
		return float64(int32(usage*100/max(1, requests))) / float64(target)
	}
	return [2]float64{ratio(usage.low, whole.high), ratio(usage.high, whole.low)}
}

// up is a/b rounded up, for positive numbers.
func up(a, b int64) int64 { return (a + b - 1) / b }
