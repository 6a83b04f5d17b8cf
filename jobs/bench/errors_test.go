package bench_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

// The server never answers three of a hundred requests: the run ends in time,
// with three timeouts and a report (inference-perf#435, guidellm#431).
func TestNeverAnswered(t *testing.T) {
	p := plan(record.BenchCase{Name: "c5", PromptTokens: 64, OutputTokens: 2, Concurrency: 5})
	p.DurationSeconds, p.RequestTimeoutSeconds, p.MaxErrorRate = 20, 30, 0.05
	o := run(t, p, &server{reply: func(n int64) http.Handler {
		if n == 30 || n == 40 || n == 50 {
			return openaitest.Script{Hold: true}
		}
		return paced(900*ms, 100*ms, 2, 64)
	}}, nil)
	if o.err != nil {
		t.Fatal(o.err)
	}
	one := o.report.Cases[0]
	if diff := cmp.Diff(map[record.ErrorClass]int{record.ErrorTimeoutTotal: 3}, one.Counts.Errors); diff != "" {
		t.Error(diff)
	}
	if one.Counts.Started != one.Counts.Succeeded+3 || !one.Validity.Valid || one.Window.Seconds != 20 || one.Window.DrainSeconds > 30 {
		t.Errorf("counts %+v, window %+v, validity %+v", one.Counts, one.Window, one.Validity)
	}
}

// Half of the requests are refused: latencies are of the others, goodput halves,
// the report is complete, the exit code is 3 (guidellm#444, vllm#26478).
func TestErrorsOverTheLimit(t *testing.T) {
	p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1})
	p.SLOs = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 1}}
	o := run(t, p, &server{reply: func(n int64) http.Handler {
		if n%2 == 0 {
			return openaitest.Script{Status: 503}
		}
		return paced(150*ms, 50*ms, 2, 64)
	}}, nil)
	if failure.KindOf(o.err) != failure.Differs || !strings.Contains(o.err.Error(), "http_503") || failure.HintOf(o.err) == "" {
		t.Errorf("error %v", o.err)
	}
	one := o.report.Cases[0]
	if one.Validity.Valid || codes(one.Validity.Reasons) != "errors" {
		t.Errorf("validity %+v", one.Validity)
	}
	if rate := one.Counts.ErrorRate(); rate < 0.49 || rate > 0.51 || one.Counts.Errors["http_503"] != one.Counts.Failed || one.Counts.ErrorSamples["http_503"] != "Service Unavailable" {
		t.Errorf("counts %+v", one.Counts)
	}
	if got := value(one.Latency.E2E.Max); got != 0.2 {
		t.Errorf("largest E2E %v", got)
	}
	if share := value(one.Goodput.Share); share < 0.49 || share > 0.51 {
		t.Errorf("good share %v", share)
	}
	if last := o.events[len(o.events)-1]; last.Name != bench.EventCase || last.Level != record.Warning || !strings.Contains(last.Message, "FAILED") {
		t.Errorf("last event %+v", last)
	}
}

// Errors are counted, not their kinds (dynamo#3674).
func TestErrorsByClass(t *testing.T) {
	p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1})
	p.WarmupSeconds, p.DurationSeconds, p.MaxErrorRate = 0, 15, 0.5
	o := run(t, p, &server{reply: func(n int64) http.Handler {
		switch {
		case n > 10 && n <= 17:
			return openaitest.Script{Status: 429}
		case n == 20 || n == 30:
			return openaitest.Script{Status: 503}
		}
		return paced(150*ms, ms, 2, 64)
	}}, nil)
	if diff := cmp.Diff(map[record.ErrorClass]int{"http_429": 7, "http_503": 2}, o.report.Cases[0].Counts.Errors); diff != "" {
		t.Error(diff)
	}
	if got := codes(o.report.Cases[0].Validity.Warnings); !strings.Contains(got, "errors") {
		t.Errorf("warnings %q", got)
	}
}

// Nothing but failures: the case ends early instead of hammering the server.
func TestHopeless(t *testing.T) {
	p := plan(record.BenchCase{Name: "c4", PromptTokens: 64, OutputTokens: 10, Concurrency: 4})
	p.DurationSeconds = 3600
	s := &server{reply: func(int64) http.Handler { return openaitest.Script{Status: 500} }}
	o := run(t, p, s, nil)
	one := o.report.Cases[0]
	if got := codes(one.Validity.Reasons); got != "hopeless errors no_requests" {
		t.Errorf("reasons %q", got)
	}
	if failure.KindOf(o.err) != failure.Differs || one.Window.Seconds > 10 || s.requests.Load() > 1000 {
		t.Errorf("%v after %d requests, window %+v", o.err, s.requests.Load(), one.Window)
	}
}

// A server that is stuck from the start fails the case, though no request was
// sent in its window.
func TestStuckFromTheStart(t *testing.T) {
	p := plan(record.BenchCase{Name: "c2", PromptTokens: 64, OutputTokens: 10, Concurrency: 2})
	o := run(t, p, &server{reply: func(int64) http.Handler { return openaitest.Script{Hold: true} }}, nil)
	one := o.report.Cases[0]
	if got := codes(one.Validity.Reasons); got != "errors no_requests never_steady" || failure.KindOf(o.err) != failure.Differs {
		t.Errorf("reasons %q, error %v", got, o.err)
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, context.Canceled)
		defer cancel()
		p := plan(record.BenchCase{Name: "a", PromptTokens: 64, OutputTokens: 2, Concurrency: 3}, record.BenchCase{Name: "b", PromptTokens: 64, OutputTokens: 2, Concurrency: 3})
		s := &server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}
		report, err := bench.Run(ctx, p, bench.Deps{HTTP: openaitest.Serve(t, s)})
		if failure.KindOf(err) != failure.Interrupted || len(report.Cases) != 1 {
			t.Fatalf("%v, %d cases", err, len(report.Cases))
		}
		one := report.Cases[0]
		if codes(one.Validity.Reasons) != "interrupted" || one.Counts.Completed == 0 || one.Window.Seconds > 8 {
			t.Errorf("reasons %+v, counts %+v, window %+v", one.Validity.Reasons, one.Counts, one.Window)
		}
	})
}
