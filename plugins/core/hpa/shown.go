package hpa

import (
	"math"
	"slices"
)

// fromStatus bounds the proposal of a metric of which only the average is
// known, as the HPA's status shows it. The ratio is exact: status and ratio
// come from the same whole number. How many pods it stands for is not, unless
// the pods prove it: any of them may have had no sample.
//
// Samples of pods that the selector no longer lists are taken to be absent.
func (in Input) fromStatus(p *Proposal) {
	fillsAtOne := p.Metric.Target != Utilization && !in.Version.since(28)
	if p.Reason = in.reason(p.Ratio, p.Ratio); p.Reason == WithinTolerance && !(fillsAtOne && p.Ratio == 1) {
		// A fill moves the ratio towards one, or past it: the size is kept.
		p.Count = Exactly(in.Replicas.Spec)
		return
	}
	if in.Pods == nil {
		p.Reason = PodsUnknown
		return
	}
	crowd, ok := in.crowdOf(p.Metric)
	if !ok {
		p.Reason = PodsUnknown
		return
	}
	count, groups := crowd.bounds(in, p)
	if count.Low > count.High {
		// The pods are not those that the sync saw.
		p.Reason = PodsUnknown
		return
	}
	p.Count, p.Groups = count, &groups
	if !count.Exact() {
		p.Reason = PodsUncertain
	}
}

// crowd is how many pods may have counted as what. The slices hold requests,
// sorted; without a utilization they are zeros.
type crowd struct {
	ignored int
	// always are unready for sure; starting are so unless they had no sample.
	always, starting []int64
	// running counted, or had no sample; either may have been unready too.
	running, either []int64
	// complete says that every pod that ran had a sample.
	complete bool
}

func (in Input) crowdOf(metric Metric) (crowd, bool) {
	c := crowd{complete: metric.Seen.Complete}
	requests := map[string]int64{}
	if metric.Target == Utilization {
		var err error
		if requests, err = in.requestsOf(metric); err != nil {
			// The sync had a value: it saw other pods.
			return crowd{}, false
		}
	}
	for i := range in.Pods {
		pod := &in.Pods[i]
		request := requests[pod.Name]
		switch in.possible(pod, metric.isCPU(), metric.Seen.Complete) {
		case ignored:
			c.ignored++
		case unready:
			c.always = append(c.always, request)
		case unready | missing:
			c.starting = append(c.starting, request)
		case counted | missing, counted:
			c.running = append(c.running, request)
		default:
			c.either = append(c.either, request)
		}
	}
	return c, true
}

// bounds goes through all numbers of pods that may have counted, have been
// unready and have had no sample.
func (c crowd) bounds(in Input, p *Proposal) (Range, Groups) {
	none := Range{math.MaxInt32, math.MinInt32}
	count, groups := none, Groups{Counted: none, Unready: none, Missing: none, Ignored: Exactly(int32(c.ignored))}
	candidates := sums(c.running, c.either)
	doubtful := sums(c.starting, c.either)
	all := sums(c.running, c.either, c.starting)
	fixed := sums(c.always)
	total := len(all) - 1
	for counted := 1; counted < len(candidates); counted++ {
		free := len(c.starting) + len(c.either) - max(0, counted-len(c.running))
		for extra := range free + 1 {
			absent := total - counted - extra
			if c.complete && absent > 0 {
				continue
			}
			one, ok := in.bounded(p, tallies{
				counted: counted, unready: len(c.always) + extra, missing: absent,
				countedRequests: candidates.of(counted), missingRequests: all.of(absent),
				extraRequests: doubtful.of(extra), fixedRequests: fixed.all(), allRequests: all.all() + fixed.all(),
			})
			if !ok {
				continue
			}
			count = count.or(one)
			groups.Counted = groups.Counted.or(Exactly(int32(counted)))
			groups.Unready = groups.Unready.or(Exactly(int32(len(c.always) + extra)))
			groups.Missing = groups.Missing.or(Exactly(int32(absent)))
		}
	}
	return count, groups
}

// sorted holds the sums of the smallest and of the largest n requests.
type sorted []struct{ low, high int64 }

func sums(parts ...[]int64) sorted {
	values := slices.Sorted(slices.Values(slices.Concat(parts...)))
	out := make(sorted, len(values)+1)
	for n := range values {
		out[n+1].low = out[n].low + values[n]
		out[n+1].high = out[n].high + values[len(values)-1-n]
	}
	return out
}

// of bounds the sum of n of the requests.
func (s sorted) of(n int) bounds64 {
	n = min(max(n, 0), len(s)-1)
	return bounds64{s[n].low, s[n].high}
}

func (s sorted) all() int64 { return s[len(s)-1].low }

// bounds64 is an interval of an amount, both ends included.
type bounds64 struct{ low, high int64 }

func (b bounds64) and(other bounds64) bounds64 {
	return bounds64{max(b.low, other.low), min(b.high, other.high)}
}

func (b bounds64) empty() bool { return b.low > b.high }
