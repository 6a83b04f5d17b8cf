package bench_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// One slot, TTFT 100 ms, 10 tokens at 20 ms: a request takes 280 ms, so all is
// known: 2.8 s hold ten of them.
func TestDefinitions(t *testing.T) {
	p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 10, Concurrency: 1})
	p.WarmupSeconds, p.DurationSeconds = 2.8, 28
	p.SLOs = []record.BenchSLO{{Metric: record.MetricTTFT, Percentile: 99, MaxSeconds: 0.1}, {Metric: record.MetricTPOT, Percentile: 99, MaxSeconds: 0.02}}
	o := run(t, p, &server{reply: func(int64) http.Handler { return paced(100*ms, 20*ms, 10, 64) }}, nil)
	if o.err != nil {
		t.Fatal(o.err)
	}
	one := o.report.Cases[0]
	if !one.Validity.Valid {
		t.Errorf("not valid: %+v", one.Validity)
	}
	same := func(name string, got *float64, want float64) {
		t.Helper()
		if diff := cmp.Diff(want, value(got), cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Errorf("%s (-want +got): %s", name, diff)
		}
	}
	for name, summary := range map[string]struct {
		got  record.LatencySummary
		want float64
		n    int
	}{
		"ttft": {one.Latency.TTFT, 0.1, 100}, "ttft_eff": {one.Latency.TTFTEff, 0.1, 100}, "ttfot": {one.Latency.TTFOT, 0.1, 100},
		"tpot": {one.Latency.TPOT, 0.02, 100}, "e2e": {one.Latency.E2E, 0.28, 100}, "e2e_eff": {one.Latency.E2EEff, 0.28, 100},
		"icl": {one.Latency.ICL, 0.02, 900}, "max_stall": {one.Latency.MaxStall, 0.02, 100},
	} {
		for _, got := range []*float64{summary.got.Mean, summary.got.Min, summary.got.P50, summary.got.P99, summary.got.Max} {
			same(name, got, summary.want)
		}
		if summary.got.Count != summary.n {
			t.Errorf("%s has %d samples, want %d", name, summary.got.Count, summary.n)
		}
	}
	if one.Latency.ITL.Count != 0 || one.Latency.ITL.P50 != nil {
		t.Errorf("ITL is known without token counts: %+v", one.Latency.ITL)
	}
	if one.Counts.Started != 100 || one.Counts.Succeeded != 100 || one.Counts.Completed != 100 || one.Counts.WarmupStarted != 10 {
		t.Errorf("counts %+v", one.Counts)
	}
	same("request rate", &one.RequestsPerSecond, 1/0.28)
	// Even requests vary by nothing, but for the one at the edge.
	same("low rate", one.RequestsPerSecondLow, 99.0/28)
	same("high rate", one.RequestsPerSecondHigh, 101.0/28)
	same("edge-corrected rate", &one.EdgeCorrectedPerSecond, 1/0.28)
	same("arrival rate", &one.StartedPerSecond, 1/0.28)
	same("output tokens", &one.OutputTokensPerSecond, 10/0.28)
	same("prompt tokens", &one.PromptTokensPerSecond, 64/0.28)
	same("goodput", one.Goodput.RequestsPerSecond, 1/0.28)
	same("share", one.Goodput.Share, 1)
	same("in flight", one.Little.InFlight, 1)
	same("product", one.Little.Product, 1)
	same("window", &one.Window.Seconds, 28)
	same("ramp", &one.Window.RampSeconds, 2.8)
	same("slip", one.Client.ScheduleSlipP99Seconds, 0)
	if !one.Window.Steady || one.Client.Limited {
		t.Errorf("steady %v, limited %v", one.Window.Steady, one.Client.Limited)
	}
	if o.report.Target.Model != "m" || *o.report.Target.MaxModelLen != 2048 {
		t.Errorf("target %+v", o.report.Target)
	}
	if len(o.records) != 110 {
		t.Errorf("%d records", len(o.records))
	}
	first := o.records[10]
	if first.Phase != record.PhaseMeasured || *first.TTFT != 0.1 || *first.TPOT != 0.02 || *first.E2E != 0.28 || len(first.Gaps) != 9 || first.Gaps[8] != 20000 || first.OutputTokens != 10 {
		t.Errorf("record %+v", first)
	}
}

// Tokens belong to the window in which their chunk came, also those of requests
// that cross its edges: a request of 10 s in a window of 25 s.
func TestTokensCrossTheEdges(t *testing.T) {
	p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 100, Concurrency: 1})
	p.WarmupSeconds, p.DurationSeconds = 5, 25
	o := run(t, p, &server{reply: func(int64) http.Handler { return paced(100*ms, 100*ms, 100, 64) }}, nil)
	one := o.report.Cases[0]
	if got := one.OutputTokensPerSecond; got != 10 {
		t.Errorf("%v tokens a second, want 10", got)
	}
	// Two requests end in the 25 s, one takes 10 s.
	if one.RequestsPerSecond != 2.0/25 || math.Abs(one.EdgeCorrectedPerSecond-0.1) > 1e-9 {
		t.Errorf("rates %v, %v", one.RequestsPerSecond, one.EdgeCorrectedPerSecond)
	}
	if one.Counts.Completed != 2 || one.Counts.Started != 2 || one.Window.DrainSeconds != 0 {
		t.Errorf("counts %+v, window %+v", one.Counts, one.Window)
	}
	if got := codes(one.Validity.Warnings); got != "littles_law short_window low_n" {
		t.Errorf("warnings %q", got)
	}
}

// The window starts when the load is there, not when the warm-up is over.
func TestWindowWaitsForTheFirstWave(t *testing.T) {
	p := plan(record.BenchCase{Name: "c4", PromptTokens: 64, OutputTokens: 2, Concurrency: 4})
	o := run(t, p, &server{reply: func(n int64) http.Handler {
		if n <= 4 {
			return paced(time.Duration(n)*1500*ms, 100*ms, 2, 64)
		}
		return paced(100*ms, 100*ms, 2, 64)
	}}, nil)
	window := o.report.Cases[0].Window
	if window.RampSeconds != 6 || window.Seconds != 16 || !window.Steady {
		t.Errorf("window %+v", window)
	}
	if max := value(o.report.Cases[0].Latency.TTFT.Max); max != 6 {
		// The first token that opens the window is in it: start is inclusive.
		t.Errorf("largest TTFT %v", max)
	}
}

// Prompts of the warm-up are not those that are measured (sglang#13934).
func TestPromptsAreDisjoint(t *testing.T) {
	seen := map[string]bool{}
	prompts := make(chan string, 4096)
	p := plan(record.BenchCase{Name: "a", PromptTokens: 64, OutputTokens: 1, Concurrency: 2}, record.BenchCase{Name: "b", PromptTokens: 64, OutputTokens: 1, Concurrency: 3})
	p.DurationSeconds = 5
	s := &server{reply: func(int64) http.Handler { return paced(100*ms, ms, 1, 64) }}
	o := run(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct{ Prompt []int }
		if json.Unmarshal(body, &request) == nil && len(request.Prompt) == 64 {
			prompts <- fmt.Sprint(request.Prompt[:16])
		}
		s.ServeHTTP(w, r)
	}), nil)
	close(prompts)
	n := 0
	for prompt := range prompts {
		seen[prompt] = true
		n++
	}
	if len(seen) != n || n != len(o.records) || n < 300 {
		t.Errorf("%d requests, %d records, %d first blocks", n, len(o.records), len(seen))
	}
}
