package bench

import (
	"math"
	"runtime/metrics"
	"testing"
	"testing/fstest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func TestLimitedAndLate(t *testing.T) {
	report := func(lag50, lag99, slip, ttft50, ttft99 float64) record.CaseReport {
		return record.CaseReport{
			Client:  record.ClientHealth{TickLagP50Seconds: &lag50, TickLagP99Seconds: &lag99, ScheduleSlipP99Seconds: &slip},
			Latency: record.CaseLatencies{TTFT: record.LatencySummary{P50: &ttft50, P99: &ttft99}},
		}
	}
	tests := map[string]struct {
		report        record.CaseReport
		limited, late bool
	}{
		"on time":                        {report(0.001, 0.005, 0.0001, 0.3, 0.5), false, false},
		"late at p99":                    {report(0.001, 0.150, 0, 0.3, 0.5), false, true},
		"later at p99 than the TTFT":     {report(0.001, 0.600, 0, 0.3, 0.5), true, true},
		"late at p99 for a fast server":  {report(0.001, 0.090, 0, 0.01, 0.02), false, true},
		"late, but little of a slow one": {report(0.001, 0.150, 0, 2, 5), false, false},
		"late in the median":             {report(0.070, 0.080, 0, 0.3, 0.5), true, false},
		"fast server, below the floors":  {report(0.004, 0.015, 0.015, 0.001, 0.002), false, false},
		"sends late":                     {report(0, 0, 0.2, 0.3, 0.5), true, false},
		"nothing known":                  {record.CaseReport{}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := limited(test.report); got != test.limited {
				t.Errorf("limited %v", got)
			}
			if got := late(test.report); got != test.late {
				t.Errorf("late %v", got)
			}
		})
	}
}

func TestLongestPause(t *testing.T) {
	buckets := []float64{math.Inf(-1), 0.001, 0.002, math.Inf(1)}
	at := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: buckets}
	}
	tests := map[string]struct {
		begin, end *metrics.Float64Histogram
		want       float64
	}{
		"none":            {at(1, 1, 0), at(1, 1, 0), 0},
		"middle bucket":   {at(1, 1, 0), at(2, 2, 0), 0.002},
		"beyond the last": {at(0, 0, 0), at(0, 0, 1), 0.002},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := longestPause(test.begin, test.end); got == nil || *got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if longestPause(nil, at(0, 0, 0)) != nil {
		t.Error("a pause is known without a histogram")
	}
}

func TestThrottledPeriods(t *testing.T) {
	file := func(text string) fstest.MapFS { return fstest.MapFS{"cpu.stat": {Data: []byte(text)}} }
	if n := throttledPeriods(file("usage_usec 5\nnr_throttled 7\n")); n == nil || *n != 7 {
		t.Errorf("got %v", n)
	}
	for name, n := range map[string]*int64{"no line": throttledPeriods(file("usage_usec 5\n")), "no file": throttledPeriods(fstest.MapFS{}), "no cgroup": throttledPeriods(nil)} {
		if n != nil {
			t.Errorf("%s: got %d", name, *n)
		}
	}
}
