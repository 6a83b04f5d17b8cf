package capacity

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	// queueFloor is the least average queue that a trigger may act above: less
	// is the chance meeting of two arrivals.
	queueFloor = 0.55
	// flatShare is how much a signal must grow between the loads around the
	// plan for a threshold to tell them apart.
	flatShare = 1.1
	// kvFloor is the share of the KV cache below which it says nothing about
	// load: something else is the limit.
	kvFloor = 0.3
)

// trigger is a kind of trigger and how its signal is read from a level.
type trigger struct {
	name, metricType, unit string
	// read returns the signal, the number of samples behind it (moments or
	// requests) and the number needed.
	read func(level) (reading, bool)
}

type reading struct {
	value    float64
	samples  int
	needed   int
	what     string
	interval *record.Interval
}

// Triggers are the kinds of trigger for which thresholds are derived.
func triggers() []trigger {
	return []trigger{
		{record.TriggerWaiting, record.MetricTypeAverageValue, "requests waiting", gauge(record.SignalWaiting)},
		{record.TriggerKV, record.MetricTypeAverageValue, "share of the KV cache", gauge(record.SignalKVCacheUsage)},
		{record.TriggerRunning, record.MetricTypeAverageValue, "requests running", gauge(record.SignalRunning)},
		{record.TriggerP99E2E, record.MetricTypeValue, "seconds", quantile(record.TriggerP99E2E)},
		{record.TriggerP99TTFT, record.MetricTypeValue, "seconds", quantile(record.TriggerP99TTFT)},
	}
}

func gauge(signal string) func(level) (reading, bool) {
	return func(l level) (reading, bool) {
		at, ok := l.Signals[signal]
		return reading{value: at.Mean, samples: at.Samples, needed: minScrapes, what: "samples"}, ok
	}
}

func quantile(name string) func(level) (reading, bool) {
	return func(l level) (reading, bool) {
		at, ok := l.Latencies[name]
		return reading{value: at.Seconds, samples: at.Count, needed: Needed(99, sureOfPercentile), what: "requests", interval: at.Interval}, ok
	}
}

// threshold derives the target of one trigger: the HPA is to act when one
// replica passes the planned load, so the target is the signal there divided
// by (1 + tolerance), rounded down.
func (t trigger) threshold(levels []level, plan record.Rate, tolerance float64) record.Threshold {
	proposal := record.Threshold{
		Trigger: t.name, MetricType: t.metricType, Unit: t.unit,
		Loads: t.loads(levels, 0, tolerance), Evidence: []record.Evidence{}, Warnings: []record.Notice{},
	}
	withhold := func(code, format string, args ...any) record.Threshold {
		proposal.Withheld = notice(code, fmt.Sprintf(format, args...))
		return proposal
	}
	known := 0
	for _, l := range levels {
		if _, ok := t.read(l); ok {
			known++
		}
	}
	if known == 0 {
		return withhold("no_metrics", "it was not measured")
	}
	if plan.Withheld != nil || plan.Concurrency == nil {
		return withhold("no_plan", "there is no planned load to act at")
	}
	load := *plan.Concurrency
	below, above, ok := around(levels, load)
	if !ok {
		return withhold("below_range", "the planned load lies below the lowest load measured")
	}
	low, lowKnown := t.read(below)
	high, highKnown := t.read(above)
	if !lowKnown || !highKnown {
		return withhold("few_loads", "it is known at %d of %d loads, not at %s around the planned load",
			known, len(levels), loadList([]level{below, above}))
	}
	proposal.Evidence = append(proposal.Evidence, t.evidence(below, low)...)
	proposal.Evidence = append(proposal.Evidence, t.evidence(above, high)...)
	for i, side := range []reading{low, high} {
		if side.samples < side.needed {
			return withhold("few_samples", "%d %s at %s are too few, %d are needed",
				side.samples, side.what, []level{below, above}[i].at(), side.needed)
		}
	}
	acts := between(load, below.Concurrency, above.Concurrency, low.value, high.value)
	if reason := t.compute(acts, levels, above); reason != nil {
		proposal.Withheld = reason
		return proposal
	}
	proposal.How = fmt.Sprintf("the signal at the planned load, between %s and %s, less the tolerance", below.at(), above.at())
	floored := t.name == record.TriggerWaiting && acts < queueFloor
	switch {
	case floored:
		acts = queueFloor
		proposal.How = fmt.Sprintf("the least queue that is no chance meeting, %s: at the planned load hardly any request waits", short(queueFloor))
	case below.Concurrency != above.Concurrency && high.value < flatShare*low.value:
		return withhold("flat", "it hardly rises around the planned load: %s at %s, %s at %s",
			short(low.value), below.at(), short(high.value), above.at())
	}
	target := floor3(acts / (1 + tolerance))
	if target <= 0 {
		return withhold("zero", "it is zero at the planned load")
	}
	return t.propose(proposal, levels, plan, target, tolerance, low.value, high.value, floored)
}

// propose fills in the target after a look at the loads it would act at.
func (t trigger) propose(proposal record.Threshold, levels []level, plan record.Rate, target, tolerance, low, high float64, floored bool) record.Threshold {
	loads := t.loads(levels, target, tolerance)
	reached := false
	for _, at := range loads {
		if at.Acts == nil || !*at.Acts {
			continue
		}
		if at.Concurrency < *plan.Concurrency {
			proposal.Withheld = notice("false_triggers", fmt.Sprintf("it would act at c=%s already, below the planned load", short(at.Concurrency)))
			return proposal
		}
		reached = true
		if floored && len(proposal.Warnings) == 0 {
			proposal.Warnings = append(proposal.Warnings, record.Notice{Code: "late", Message: fmt.Sprintf(
				"it acts at c=%s, past the planned load c=%s: no queue forms before", short(at.Concurrency), short(*plan.Concurrency))})
			proposal.Evidence = append(proposal.Evidence, t.evidenceAt(levels, at.Concurrency)...)
		}
	}
	if !reached {
		proposal.Withheld = notice("never_acts", "no measured load reaches it")
		return proposal
	}
	proposal.Loads = loads
	proposal.Threshold = number(target)
	proposal.ActsAbove = number(target * (1 + tolerance))
	if !floored {
		proposal.Interval = &record.Interval{
			Low: number(math.Min(low, high) / (1 + tolerance)), High: number(math.Max(low, high) / (1 + tolerance)),
		}
	}
	proposal.Concurrency = plan.Concurrency
	proposal.RequestsPerSecond = plan.RequestsPerSecond
	proposal.Warnings = append(proposal.Warnings, t.caveats(target*(1+tolerance))...)
	return proposal
}

// compute withholds a KV threshold where the cache is not what fills up.
func (t trigger) compute(acts float64, levels []level, above level) *record.Notice {
	if t.name != record.TriggerKV {
		return nil
	}
	if acts < kvFloor {
		return notice("kv_low", fmt.Sprintf("the cache is %s %% full at the planned load: something else is the limit", short(100*acts)))
	}
	waiting, ok := above.Signals[record.SignalWaiting]
	if !ok || waiting.Mean < queueFloor {
		return nil
	}
	for _, l := range levels {
		for _, one := range l.cases {
			if increase, known := one.increase(record.SignalPreemptions); !known || increase > 0 {
				return nil
			}
		}
	}
	return notice("compute_bound", fmt.Sprintf(
		"requests wait at %s while nothing is ever preempted: compute is the limit, not the cache", above.at()))
}

// caveats are what to know about a trigger on this signal.
func (t trigger) caveats(acts float64) []record.Notice {
	if t.name != record.TriggerP99E2E {
		return nil
	}
	caveats := []record.Notice{{Code: "metric", Message: "use vllm:e2e_request_latency_seconds: request_inference_time_seconds leaves waiting out"}}
	// The buckets of vLLM's request latency histograms, in seconds.
	edges := []float64{0, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	for i := 1; i < len(edges); i++ {
		if edges[i-1] < acts && acts <= edges[i] {
			caveats = append(caveats, record.Notice{Code: "buckets", Message: fmt.Sprintf(
				"vLLM's histogram has no edge between %ss and %ss: a quantile there is interpolated", short(edges[i-1]), short(edges[i]))})
		}
	}
	return caveats
}

// loads holds the signal of every level against a target; 0 is none.
func (t trigger) loads(levels []level, target, tolerance float64) []record.TriggerLoad {
	all := make([]record.TriggerLoad, 0, len(levels))
	for _, l := range levels {
		at := record.TriggerLoad{Concurrency: l.Concurrency}
		if read, ok := t.read(l); ok {
			at.Value = number(read.value)
			if target > 0 {
				acts := read.value/target > 1+tolerance
				at.Ratio, at.Acts = number(read.value/target), &acts
			}
		}
		all = append(all, at)
	}
	return all
}

func (t trigger) evidence(l level, read reading) []record.Evidence {
	return l.evidence(number(read.value), &read.samples, read.interval)
}

func (t trigger) evidenceAt(levels []level, load float64) []record.Evidence {
	for _, l := range levels {
		if read, ok := t.read(l); ok && l.Concurrency == load {
			return t.evidence(l, read)
		}
	}
	return nil
}

// around returns the neighbouring levels of a load; both are the same where it
// was measured.
func around(levels []level, load float64) (below, above level, ok bool) {
	for i, l := range levels {
		if l.Concurrency == load {
			return l, l, true
		}
		if l.Concurrency > load {
			if i == 0 {
				return level{}, level{}, false
			}
			return levels[i-1], l, true
		}
	}
	return level{}, level{}, false
}

func between(at, from, to, low, high float64) float64 {
	if to == from {
		return low
	}
	return low + (high-low)*(at-from)/(to-from)
}
