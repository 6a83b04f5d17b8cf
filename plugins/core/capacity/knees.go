package capacity

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// knees applies every rule and words what it saw.
func knees(levels []level, slos []record.BenchSLO, band *Band) []record.Knee {
	curve := points(levels)
	all := []record.Knee{}
	add := func(rule string, n float64, ok bool, how, withheld string) {
		knee := record.Knee{Rule: rule, How: how, Evidence: []record.Evidence{}}
		if !ok {
			knee.Withheld = notice("no_knee", withheld)
		} else {
			knee.Concurrency = number(n)
			for _, l := range levels {
				knee.Evidence = append(knee.Evidence, l.Cases...)
			}
		}
		all = append(all, knee)
	}

	n, ok := BoundsKnee(curve)
	how := "X_max R(1): where waiting must begin"
	add(record.KneeBounds, n, ok, how, "it needs a load of one request and another")

	n, ok = PowerKnee(curve)
	add(record.KneePower, n, ok, "most throughput per latency, X/R", "it needs 3 loads")

	n, ok = KneedleKnee(curve)
	add(record.KneeKneedle, n, ok, "furthest above the straight line", "it needs 3 loads and a curve that bends")
	if knee := &all[len(all)-1]; ok && band != nil {
		knee.Interval = band.Kneedle.interval()
	}

	n, ok = MarginalKnee(curve)
	how = "from there one more in flight gains below 10 % of the first gain"
	if gains := Gains(curve); ok {
		how += fmt.Sprintf(", %s req/s", short(gains[0]))
	}
	add(record.KneeMarginal, n, ok, how, "the gain stays above 10 % of the first")

	if len(slos) > 0 {
		all = append(all, sloKnee(levels, slos))
	}
	return all
}

// sloKnee is where the first objective breaks, by a straight line between the
// loads on both sides.
func sloKnee(levels []level, slos []record.BenchSLO) record.Knee {
	knee := record.Knee{Rule: record.KneeSLO, Evidence: []record.Evidence{}}
	first := math.Inf(1)
	for _, slo := range slos {
		name := SLOName(slo)
		for i, l := range levels {
			at, ok := l.Latencies[name]
			if !ok || at.Seconds <= slo.MaxSeconds {
				continue
			}
			if i == 0 {
				knee.Withheld = notice("slo_broken", breaking(l, slo))
				return knee
			}
			before, ok := levels[i-1].Latencies[name]
			if !ok {
				break
			}
			n := between(slo.MaxSeconds, before.Seconds, at.Seconds, levels[i-1].Concurrency, l.Concurrency)
			if n < first {
				first = n
				knee.How = fmt.Sprintf("%s passes %ss, between %s and %s", name, short(slo.MaxSeconds), levels[i-1].at(), l.at())
				knee.Evidence = append(append([]record.Evidence{}, levels[i-1].evidence(number(before.Seconds), &before.Count, before.Interval)...),
					l.evidence(number(at.Seconds), &at.Count, at.Interval)...)
				knee.Interval = &record.Interval{Low: number(levels[i-1].Concurrency), High: number(l.Concurrency)}
			}
			break
		}
	}
	if math.IsInf(first, 1) {
		knee.Withheld = notice("no_knee", "no objective breaks at the measured loads")
		return knee
	}
	knee.Concurrency = number(first)
	return knee
}

// kneeRange spans the rules that look at the curve alone.
func kneeRange(knees []record.Knee) record.KneeRange {
	low, high, found := math.Inf(1), 0.0, 0
	for _, knee := range knees {
		if knee.Concurrency != nil && knee.Rule != record.KneeSLO {
			low, high = min(low, *knee.Concurrency), max(high, *knee.Concurrency)
			found++
		}
	}
	if found == 0 {
		return record.KneeRange{}
	}
	return record.KneeRange{Low: number(low), High: number(high), Agree: found > 1 && high <= 2*low}
}
