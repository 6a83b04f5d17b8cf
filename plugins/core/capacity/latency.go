package capacity

import (
	"math"
	"strconv"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// LatencyName names a percentile of a latency, as in "p99_e2e".
func LatencyName(metric string, percentile float64) string {
	return "p" + strconv.FormatFloat(percentile, 'f', -1, 64) + "_" + metric
}

// SLOName names an objective's latency.
func SLOName(slo record.BenchSLO) string { return LatencyName(slo.Metric, slo.Percentile) }

// Needed returns how many requests one needs to speak of a percentile with the
// given confidence even if none of them is over the limit:
// 1 - q^n >= confidence. For p99 that is 459 at 99 % and 69 at 50 %.
func Needed(percentile, confidence float64) int {
	q := percentile / 100
	if q <= 0 || q >= 1 {
		return math.MaxInt32
	}
	return int(math.Ceil(math.Log(1-confidence) / math.Log(q)))
}

const (
	// sureOfPercentile is the confidence that makes a percentile usable for a
	// threshold (MLPerf inference rules, early stopping).
	sureOfPercentile = 0.99
	// likelyPercentile is the least confidence at which an objective is said to
	// hold at all.
	likelyPercentile = 0.5
)

func summary(report record.CaseReport, metric string) record.LatencySummary {
	switch metric {
	case record.MetricTTFT:
		return report.Latency.TTFT
	case record.MetricTPOT:
		return report.Latency.TPOT
	case record.MetricMaxStall:
		return report.Latency.MaxStall
	case record.MetricE2E:
		return report.Latency.E2E
	}
	return record.LatencySummary{}
}

// latencyAt reads a percentile: the exact one where the summary has it, else
// from the histogram, within its precision.
func latencyAt(summary record.LatencySummary, percentile float64) (record.LatencyAt, bool) {
	at := record.LatencyAt{Count: summary.Count, Confident: summary.Count >= Needed(percentile, sureOfPercentile)}
	exact := map[float64]*float64{50: summary.P50, 90: summary.P90, 95: summary.P95, 99: summary.P99}[percentile]
	if summary.Count <= 0 {
		return at, false
	}
	if percentile == 99 && (summary.P99Low != nil || summary.P99High != nil) {
		at.Interval = &record.Interval{Low: summary.P99Low, High: summary.P99High}
	}
	if exact != nil {
		at.Seconds = *number(*exact)
		return at, true
	}
	if summary.Histogram == nil {
		return at, false
	}
	value, ok := summary.Histogram.Quantile(percentile / 100)
	if !ok {
		return at, false
	}
	at.Seconds = *number(value)
	return at, true
}

// confidence returns how sure one may be that at most 1-q of all requests take
// longer than limit, given those measured: with k of n over the limit it is
// P(Binomial(n, 1-q) > k). Where k is not known exactly the largest that the
// summary allows is taken, so the answer is a lower bound.
func confidence(summary record.LatencySummary, slo record.BenchSLO) float64 {
	q := slo.Percentile / 100
	n := summary.Count
	if q >= 1 || n <= 0 {
		return 0
	}
	over := n
	if at, ok := latencyAt(summary, slo.Percentile); ok && at.Seconds <= slo.MaxSeconds {
		over = n - stats.Rank(n, q)
	}
	if summary.Max != nil && *summary.Max <= slo.MaxSeconds {
		over = 0
	} else if summary.Histogram != nil {
		over = min(over, above(summary.Histogram, slo.MaxSeconds))
	}
	return 1 - binomialAtMost(n, over, 1-q)
}

// above counts the samples that may be above limit: a bucket counts when any
// of it is.
func above(histogram *stats.Histogram, limit float64) int {
	n := int64(0)
	growth := (1 + histogram.Precision) / (1 - histogram.Precision)
	for i, index := range histogram.Indexes {
		if i < len(histogram.Counts) && math.Pow(growth, float64(index)) > limit {
			n += histogram.Counts[i]
		}
	}
	return int(n)
}

// binomialAtMost is P(Binomial(n, p) <= k).
func binomialAtMost(n, k int, p float64) float64 {
	if k >= n {
		return 1
	}
	sum := 0.0
	whole, _ := math.Lgamma(float64(n) + 1)
	for i := range k + 1 {
		chosen, _ := math.Lgamma(float64(i) + 1)
		rest, _ := math.Lgamma(float64(n-i) + 1)
		sum += math.Exp(whole - chosen - rest + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}
