package bench

import (
	"math"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// confidence is that of every interval in a report.
const confidence = 0.95

// rateParts is the number of equal parts of a window whose rates give the
// interval of the mean rate; each must hold partLeast completions on average.
const (
	rateParts = 10
	partLeast = 2
)

// report is the report of a case, apart from what others know of it: the server,
// the client's health, and the verdict.
func (a *collected) report(w window, drained, started time.Time) record.CaseReport {
	a.window = w
	seconds := w.seconds()
	report := record.CaseReport{
		Case: a.c,
		Window: record.CaseWindow{
			Start: wall(w.start), End: wall(w.end), Seconds: seconds, Steady: w.steady,
			RampSeconds: w.start.Sub(started).Seconds(), DrainSeconds: max(drained.Sub(w.end).Seconds(), 0),
		},
		Counts:                 a.counts,
		RequestsPerSecond:      a.rate(float64(a.counts.Completed)),
		StartedPerSecond:       a.rate(float64(a.counts.Succeeded)),
		EdgeCorrectedPerSecond: a.rate(a.flow),
		OutputTokensPerSecond:  a.rate(a.outputTokens),
		PromptTokensPerSecond:  a.rate(a.promptTokens),
		Latency: record.CaseLatencies{
			TTFT: summary(&a.ttft), TTFTEff: summary(&a.ttftEff), TTFOT: summary(&a.ttfot), TPOT: summary(&a.tpot),
			ICL: summary(&a.icl), ITL: summary(&a.itl), E2E: summary(&a.e2e), E2EEff: summary(&a.e2eEff), MaxStall: summary(&a.stall),
		},
		Server: map[string]*record.ServerSeries{},
		Little: a.little(),
	}
	for _, signal := range record.BenchSignals() {
		report.Server[signal] = nil
	}
	if low, high, ok := a.rateInterval(); ok {
		report.RequestsPerSecondLow, report.RequestsPerSecondHigh = &low, &high
	}
	for _, one := range a.tally.Misses() {
		report.Objectives = append(report.Objectives, record.ObjectiveCount{Objective: one.Objective, Met: one.Of - one.Missed, Missed: one.Missed, Effect: one.Effect})
	}
	if len(a.plan.SLOs) > 0 && seconds > 0 {
		report.Goodput.Good = ptr(a.good)
		report.Goodput.RequestsPerSecond = ptr(a.rate(float64(a.good)))
		if a.counts.Started > 0 {
			report.Goodput.Share = ptr(float64(a.good) / float64(a.counts.Started))
		}
	}
	return report
}

// rateInterval is the interval of the request rate by the method of batch means,
// and no narrower than a request more or less: in step with the parts of the
// window, even requests would have an interval of nothing.
func (a *collected) rateInterval() (low, high float64, ok bool) {
	part := a.window.seconds() / rateParts
	if part <= 0 || len(a.ends) < rateParts*partLeast {
		return 0, 0, false
	}
	rates := make([]float64, rateParts)
	for _, end := range a.ends {
		rates[min(int(end/part), rateParts-1)] += 1 / part
	}
	_, low, high, ok = stats.MeanInterval(rates, confidence)
	n := float64(len(a.ends))
	return max(min(low, a.rate(n-1)), 0), max(high, a.rate(n+1)), ok
}

// little checks L = X R. L is integrated from the in-flight counter, X R is from
// the requests that left in the window, failed ones included: they took a slot.
func (a *collected) little() record.LittlesLaw {
	if a.window.seconds() <= 0 {
		return record.LittlesLaw{}
	}
	law := record.LittlesLaw{InFlight: ptr(a.window.inFlight), Product: ptr(a.rate(a.departed))}
	if a.window.inFlight > 0 {
		law.RelativeError = ptr(math.Abs(a.window.inFlight-*law.Product) / a.window.inFlight)
	}
	return law
}

// summary describes a sample.
func summary(s *stats.Sample) record.LatencySummary {
	n := s.Count()
	if n == 0 {
		return record.LatencySummary{}
	}
	one := record.LatencySummary{
		Count: n, Mean: ptr(s.Mean()), Min: ptr(s.Min()), Max: ptr(s.Max()),
		P50: ptr(s.Quantile(0.50)), P90: ptr(s.Quantile(0.90)), P95: ptr(s.Quantile(0.95)), P99: ptr(s.Quantile(0.99)),
		LowN: stats.Rank(n, 0.99) == n, Histogram: s.Histogram(),
	}
	low, high := s.QuantileInterval(0.99, confidence)
	if low > 0 {
		one.P99Low = ptr(s.AtRank(low))
	}
	if high > 0 {
		one.P99High = ptr(s.AtRank(high))
	}
	return one
}
