package capacity

import (
	"math"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// The numbers of the MLPerf early stopping rule: requests needed for p99.
func TestNeeded(t *testing.T) {
	cases := map[string]struct {
		percentile, confidence float64
		want                   int
	}{
		"p99 at 99 %": {99, .99, 459},
		"p99 at 50 %": {99, .5, 69},
		"p95 at 99 %": {95, .99, 90},
		"p50 at 99 %": {50, .99, 7},
		"p100":        {100, .99, math.MaxInt32},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Needed(test.percentile, test.confidence); got != test.want {
				t.Errorf("needed %d, want %d", got, test.want)
			}
		})
	}
}

func TestConfidence(t *testing.T) {
	slo := record.BenchSLO{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 10}
	var spread []float64
	for i := range 838 {
		spread = append(spread, 1)
		if i < 2 {
			spread[i] = 20
		}
	}
	cases := map[string]struct {
		summary record.LatencySummary
		want    float64
	}{
		"459, none over":           {record.LatencySummary{Count: 459, Max: ptr(9.0), P99: ptr(8.0)}, .99},
		"158, none over":           {record.LatencySummary{Count: 158, Max: ptr(9.0), P99: ptr(8.0)}, .796},
		"838, two over":            {record.LatencySummary{Count: 838, Max: ptr(20.0), P99: ptr(1.0), Histogram: stats.NewHistogram(spread)}, .99},
		"739, only p99 is known":   {record.LatencySummary{Count: 739, P99: ptr(8.0)}, .459},
		"739, p99 is over":         {record.LatencySummary{Count: 739, P99: ptr(12.0)}, 0},
		"nothing":                  {record.LatencySummary{}, 0},
		"a count without a number": {record.LatencySummary{Count: 500}, 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := confidence(test.summary, slo); math.Abs(got-test.want) > .002 {
				t.Errorf("confidence %.4f, want %.3f", got, test.want)
			}
		})
	}
}

func TestLatencyAt(t *testing.T) {
	var samples []float64
	for i := range 1000 {
		samples = append(samples, float64(i+1)/100)
	}
	full := record.LatencySummary{Count: 1000, P50: ptr(5.0), P99: ptr(9.9), P99Low: ptr(9.8), P99High: ptr(9.97), Histogram: stats.NewHistogram(samples)}
	cases := map[string]struct {
		summary    record.LatencySummary
		percentile float64
		want       float64
		ok         bool
	}{
		"exact":              {full, 99, 9.9, true},
		"from the histogram": {full, 99.9, 9.99, true},
		"no histogram":       {record.LatencySummary{Count: 10, P50: ptr(1.0)}, 75, 0, false},
		"no samples":         {record.LatencySummary{P50: ptr(1.0)}, 50, 0, false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := latencyAt(test.summary, test.percentile)
			if ok != test.ok || math.Abs(got.Seconds-test.want) > .011*test.want {
				t.Errorf("%g, %v, want %g, %v", got.Seconds, ok, test.want, test.ok)
			}
		})
	}
	at, _ := latencyAt(full, 99)
	if at.Interval == nil || *at.Interval.High != 9.97 || !at.Confident {
		t.Errorf("p99 of 1000 requests: %+v", at)
	}
}

func TestSLOName(t *testing.T) {
	for want, slo := range map[string]record.BenchSLO{
		"p99_e2e":    {Metric: record.MetricE2E, Percentile: 99},
		"p99.9_ttft": {Metric: record.MetricTTFT, Percentile: 99.9},
	} {
		if got := SLOName(slo); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
