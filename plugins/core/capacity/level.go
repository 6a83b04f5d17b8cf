package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// level is one load and the cases measured at it.
type level struct {
	record.CapacityLevel
	cases []measured
}

func (l level) point() Point { return Point{N: l.Concurrency, X: l.RequestsPerSecond} }

// at names the load as people do.
func (l level) at() string { return "c=" + short(l.Concurrency) }

// levels joins the cases of each load, in rising order. latencies are the
// percentiles to keep.
func levels(cases []measured, latencies []record.BenchSLO) []level {
	var joined []level
	sorted := slices.SortedStableFunc(slices.Values(cases), func(a, b measured) int { return cmp.Compare(a.load(), b.load()) })
	for _, one := range sorted {
		if n := len(joined); n > 0 && joined[n-1].Concurrency == one.load() {
			joined[n-1].cases = append(joined[n-1].cases, one)
			continue
		}
		joined = append(joined, level{CapacityLevel: record.CapacityLevel{Concurrency: one.load()}, cases: []measured{one}})
	}
	for i := range joined {
		joined[i].join(latencies)
	}
	gains := Gains(points(joined))
	for i, gain := range gains {
		joined[i+1].GainPerRequest = number(gain)
	}
	saturate(joined)
	return joined
}

func points(levels []level) []Point {
	var all []Point
	for _, l := range levels {
		all = append(all, l.point())
	}
	return all
}

// join fills the level from its cases: means of rates and signals, the worst
// of the latencies.
func (l *level) join(latencies []record.BenchSLO) {
	n := float64(len(l.cases))
	rate, tokens, goodput := 0.0, 0.0, 0.0
	good := true
	for _, one := range l.cases {
		rate += one.point().X / n
		tokens += one.report.OutputTokensPerSecond / one.replicas / n
		if one.report.Goodput.RequestsPerSecond == nil {
			good = false
		} else {
			goodput += *one.report.Goodput.RequestsPerSecond / one.replicas / n
		}
		l.Cases = append(l.Cases, one.evidence())
	}
	l.RequestsPerSecond = *number(rate)
	if len(l.cases) == 1 {
		l.Interval = l.cases[0].rateInterval()
	}
	if tokens > 0 {
		l.OutputTokensPerSecond = number(tokens)
	}
	if good {
		l.GoodputPerSecond = number(goodput)
	}
	l.Latencies = map[string]record.LatencyAt{}
	for _, slo := range latencies {
		for _, one := range l.cases {
			at, ok := latencyAt(summary(one.report, slo.Metric), slo.Percentile)
			if had, seen := l.Latencies[SLOName(slo)]; ok && (!seen || at.Seconds > had.Seconds) {
				l.Latencies[SLOName(slo)] = at
			}
		}
	}
	l.Signals = map[string]record.SignalAt{}
	for _, name := range []string{record.SignalWaiting, record.SignalRunning, record.SignalKVCacheUsage} {
		if at, ok := l.signal(name); ok {
			l.Signals[name] = at
		}
	}
}

// signal joins a signal over the cases; it is known only if every case has it.
func (l *level) signal(name string) (record.SignalAt, bool) {
	var joined record.SignalAt
	mean := 0.0
	for i, one := range l.cases {
		at, ok := one.signal(name)
		if !ok {
			return record.SignalAt{}, false
		}
		mean += at.Mean / float64(len(l.cases))
		joined.Samples += at.Samples
		if i == 0 {
			joined.Max, joined.Min = at.Max, at.Min
			continue
		}
		joined.Max, joined.Min = extreme(joined.Max, at.Max, false), extreme(joined.Min, at.Min, true)
	}
	joined.Mean = *number(mean)
	return joined, true
}

func extreme(a, b *float64, smallest bool) *float64 {
	if a == nil || b == nil {
		return nil
	}
	if (*b < *a) == smallest {
		return b
	}
	return a
}

// evidence returns the level's cases with the signal or latency that a number
// rests on.
func (l level) evidence(value *float64, samples *int, interval *record.Interval) []record.Evidence {
	var rests []record.Evidence
	for _, one := range l.Cases {
		one.Value, one.Samples, one.Interval = value, samples, interval
		rests = append(rests, one)
	}
	return rests
}

func loadList(levels []level) string {
	text := ""
	for i, l := range levels {
		switch {
		case i == 0:
		case i == len(levels)-1:
			text += " and "
		default:
			text += ", "
		}
		text += short(l.Concurrency)
	}
	return fmt.Sprintf("c=%s", text)
}
