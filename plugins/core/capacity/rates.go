package capacity

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	// minLevels is the number of loads below which a curve is not a curve.
	minLevels = 3
	// extrapolation is how far beyond the highest measured load the fitted
	// peak may lie and still count as seen.
	extrapolation = 1.25
	// trustedMiss is the largest relative miss of a fit that is used for X_max.
	trustedMiss = 0.1
)

// maximum is X_max: the fitted ceiling where the peak was seen or nearly, else
// the best measured rate.
func maximum(levels []level, fitted *Fit, band *Band) record.Rate {
	top := highest(levels)
	last := levels[len(levels)-1]
	measuredRate := record.Rate{
		RequestsPerSecond: number(top.RequestsPerSecond), Interval: top.Interval, Concurrency: number(top.Concurrency),
		LowerBound: rising(levels),
		Binding:    notice("measured", "the highest rate measured"),
		Evidence:   top.Cases,
	}
	if fitted == nil || worstMiss(levels, *fitted) > trustedMiss || fitted.Peak() > extrapolation*last.Concurrency {
		return measuredRate
	}
	rate := record.Rate{
		RequestsPerSecond: number(fitted.Ceiling()),
		Concurrency:       number(fitted.Peak()),
		Binding:           notice("fit", "the peak of the fitted curve"),
	}
	if band != nil {
		rate.Interval = band.Ceiling.interval()
	}
	for _, l := range levels {
		rate.Evidence = append(rate.Evidence, l.Cases...)
	}
	return rate
}

// sustained is X_sustain: the best measured rate below the first load with a
// sign of saturation. It is returned with the index of its level.
func sustained(levels []level) (record.Rate, int) {
	end := len(levels)
	for i, l := range levels {
		if l.Saturation.Over {
			end = i
			break
		}
	}
	if end == 0 {
		return record.Rate{Withheld: notice("saturated", "the lowest load is too much already: "+failed(levels[0]))}, -1
	}
	at := index(levels[:end])
	top := levels[at]
	rate := record.Rate{
		RequestsPerSecond: number(top.RequestsPerSecond), Interval: top.Interval,
		Concurrency: number(top.Concurrency), Evidence: top.Cases,
	}
	last := levels[len(levels)-1]
	switch {
	case end < len(levels):
		rate.Binding = notice("saturation", fmt.Sprintf("at %s %s", levels[end].at(), failed(levels[end])))
		rate.Evidence = append(rate.Evidence, levels[end].Cases...)
	case len(levels) < minLevels:
		rate.LowerBound = true
		rate.Binding = notice("range", "too few loads were measured to see the curve bend")
	case rising(levels):
		rate.LowerBound = true
		rate.Binding = notice("range", fmt.Sprintf("%s is the highest load measured and the curve still rises", last.at()))
	default:
		rate.Binding = notice("plateau", fmt.Sprintf("the curve is flat by %s, the highest load measured", last.at()))
	}
	return rate, at
}

// objective is X_slo: the best measured rate such that every objective holds
// there and at every lower load. holds is the number of levels at which they
// hold, -1 where that is not known.
func objective(levels []level, slos []record.BenchSLO) (rate record.Rate, holds int) {
	if len(slos) == 0 {
		return record.Rate{Withheld: notice("no_slo", "no objective was given")}, -1
	}
	end, breaks := len(levels), record.BenchSLO{}
scan:
	for i, l := range levels {
		for _, slo := range slos {
			at, ok := l.Latencies[SLOName(slo)]
			if !ok {
				return record.Rate{Withheld: notice("no_latency", fmt.Sprintf("%s was not measured at %s", SLOName(slo), l.at()))}, -1
			}
			if at.Seconds > slo.MaxSeconds {
				end, breaks = i, slo
				break scan
			}
		}
	}
	if end == 0 {
		return record.Rate{Withheld: notice("slo_broken", "the lowest load breaks it already: "+breaking(levels[0], breaks))}, 0
	}
	top := levels[index(levels[:end])]
	sure := 1.0
	for _, slo := range slos {
		for _, one := range top.cases {
			latencies := summary(one.report, slo.Metric)
			if needed := Needed(slo.Percentile, likelyPercentile); latencies.Count < needed {
				return record.Rate{Withheld: notice("few_samples", fmt.Sprintf(
					"%s at %s rests on %d requests: below %d nothing can be said, %d are needed for 99 %%",
					SLOName(slo), top.at(), latencies.Count, needed, Needed(slo.Percentile, sureOfPercentile)))}, end
			}
			sure = min(sure, confidence(latencies, slo))
		}
	}
	rate = record.Rate{
		RequestsPerSecond: number(top.RequestsPerSecond), Interval: top.Interval, Concurrency: number(top.Concurrency),
		Confidence: number(round(sure, 3)), Evidence: top.Cases,
	}
	if end < len(levels) {
		rate.Binding = notice("slo", breaking(levels[end], breaks))
		rate.Evidence = append(rate.Evidence, levels[end].Cases...)
		return rate, end
	}
	rate.LowerBound = true
	rate.Binding = notice("range", fmt.Sprintf("every objective holds up to %s, the highest load measured", levels[end-1].at()))
	return rate, end
}

// planned is X_plan: the smaller of what is sustained and what meets the
// objectives, less the headroom. Concurrency is the load at which the measured
// curve, joined by straight lines, reaches it.
func planned(levels []level, sustain, slo record.Rate, slos []record.BenchSLO, headroom float64) record.Rate {
	if len(levels) < minLevels {
		return record.Rate{Withheld: notice("few_loads", fmt.Sprintf("a curve needs %d loads, measured: %d", minLevels, len(levels)))}
	}
	if sustain.Withheld != nil {
		return record.Rate{Withheld: sustain.Withheld}
	}
	from := sustain
	if len(slos) > 0 {
		if slo.Withheld != nil {
			return record.Rate{Withheld: slo.Withheld}
		}
		if *slo.RequestsPerSecond <= *sustain.RequestsPerSecond && slo.Binding.Code == "slo" {
			from = slo
		}
	}
	rate := from
	rate.Interval = nil
	plan := *from.RequestsPerSecond * (1 - headroom)
	rate.RequestsPerSecond = number(plan)
	rate.Concurrency = nil
	if at, ok := loadFor(points(levels), plan); ok {
		rate.Concurrency = number(at)
	}
	if from.Interval != nil && from.Interval.Low != nil && from.Interval.High != nil {
		rate.Interval = &record.Interval{Low: number(*from.Interval.Low * (1 - headroom)), High: number(*from.Interval.High * (1 - headroom))}
	}
	if len(slos) > 0 {
		rate.Confidence = slo.Confidence
	}
	return rate
}

// loadFor is the lowest load at which straight lines between the points, and
// from zero to the first, reach rate.
func loadFor(points []Point, rate float64) (float64, bool) {
	before := Point{}
	for _, point := range points {
		if point.X >= rate && point.X > before.X {
			return before.N + (point.N-before.N)*(rate-before.X)/(point.X-before.X), true
		}
		before = point
	}
	return 0, false
}

// rising says whether the gain at the end of the range is still worth having,
// or too few loads were measured to know.
func rising(levels []level) bool {
	gains := Gains(points(levels))
	return len(levels) < minLevels || gains[len(gains)-1] >= marginalShare*gains[0]
}

func highest(levels []level) level { return levels[index(levels)] }

func index(levels []level) (at int) {
	for i, l := range levels {
		if l.RequestsPerSecond > levels[at].RequestsPerSecond {
			at = i
		}
	}
	return at
}

func failed(l level) string {
	for _, test := range l.Saturation.Tests {
		if test.Result == record.TestFailed {
			return test.Detail
		}
	}
	return ""
}

func breaking(l level, slo record.BenchSLO) string {
	return fmt.Sprintf("%s is %ss at %s, limit %ss", SLOName(slo), short(l.Latencies[SLOName(slo)].Seconds), l.at(), short(slo.MaxSeconds))
}

func worstMiss(levels []level, fitted Fit) float64 {
	worst := 0.0
	for _, l := range levels {
		worst = max(worst, math.Abs(fitted.At(l.Concurrency)/l.RequestsPerSecond-1))
	}
	return worst
}
