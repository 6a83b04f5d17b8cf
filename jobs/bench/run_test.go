package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

const ms = time.Millisecond

// paced answers with tokens at known times: the first after ttft, then one each
// gap, the finish with the last.
func paced(ttft, gap time.Duration, tokens, prompt int) openaitest.Script {
	var script openaitest.Script
	for i := range tokens {
		write := `data: {"choices":[{"index":0,"text":"a"}]}` + "\n\n"
		if i == tokens-1 {
			write = `data: {"choices":[{"index":0,"text":"a","finish_reason":"length"}]}` + "\n\n" +
				fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, tokens) + "\n\ndata: [DONE]\n\n"
		}
		script.Steps = append(script.Steps, openaitest.Step{At: ttft + time.Duration(i)*gap, Write: write})
	}
	return script
}

// server is an engine with one model whose replies the test decides by request.
type server struct {
	requests atomic.Int64
	// reply answers the n-th request for a completion, counted from 1 after the
	// probe.
	reply func(n int64) http.Handler
	probe http.Handler
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		_, _ = io.WriteString(w, `{"data":[{"id":"m","max_model_len":2048}]}`)
		return
	}
	n := s.requests.Add(1) - 1
	if n == 0 {
		handler := s.probe
		if handler == nil {
			handler = paced(10*ms, 10*ms, 1, 16)
		}
		handler.ServeHTTP(w, r)
		return
	}
	s.reply(n).ServeHTTP(w, r)
}

func plan(cases ...record.BenchCase) record.BenchPlan {
	return record.BenchPlan{
		TypeMeta: record.Meta(record.KindBenchPlan), Run: "test",
		Target: record.BenchTarget{URL: openaitest.URL, API: record.APICompletions},
		Cases:  cases, WarmupSeconds: 2, DurationSeconds: 20, RequestTimeoutSeconds: 60, Stream: true, Seed: 1,
	}
}

type outcome struct {
	report  record.BenchReport
	records []record.RequestRecord
	events  []record.Event
	err     error
}

// run carries out a plan on virtual time.
func run(t *testing.T, p record.BenchPlan, handler http.Handler, change func(*bench.Deps)) outcome {
	t.Helper()
	var o outcome
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		deps := bench.Deps{
			HTTP: openaitest.Serve(t, handler), Records: &file, ToolVersion: "v0",
			Emit: func(e record.Event) { o.events = append(o.events, e) },
		}
		if change != nil {
			change(&deps)
		}
		o.report, o.err = bench.Run(t.Context(), p, deps)
		if file.Len() > 0 {
			var err error
			if _, o.records, err = record.ReadRequests(&file); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

func codes(findings []record.BenchFinding) string {
	var all []string
	for _, one := range findings {
		all = append(all, one.Code)
	}
	return strings.Join(all, " ")
}

func value(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

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

func TestReplies(t *testing.T) {
	tests := map[string]struct {
		reply    openaitest.Script
		change   func(*record.BenchPlan)
		reasons  string
		warnings string
		check    func(*testing.T, record.CaseReport)
	}{
		"shorter than asked": {
			reply: paced(100*ms, 10*ms, 5, 64), reasons: "hopeless errors no_requests",
			check: func(t *testing.T, c record.CaseReport) {
				if c.Counts.Errors[record.ErrorShortOutput] != c.Counts.Started {
					t.Errorf("counts %+v", c.Counts)
				}
			},
		},
		"other prompt length vllm#10847": {reply: paced(100*ms, 10*ms, 10, 65), reasons: "prompt_length"},
		"other prompt length of text": {
			reply: paced(100*ms, 10*ms, 10, 70), change: func(p *record.BenchPlan) { p.Target.API = record.APIChat }, warnings: "prompt_length",
		},
		"no usage": {
			reply: func() openaitest.Script {
				s := paced(100*ms, 10*ms, 10, 64)
				s.Steps[9].Write = `data: {"choices":[{"text":" ","finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n"
				return s
			}(),
			warnings: "tokens_estimated",
			check: func(t *testing.T, c record.CaseReport) {
				if c.Counts.TokensEstimated != c.Counts.Completed || value(c.Latency.TPOT.P50) != 0.01 {
					t.Errorf("counts %+v, TPOT %v", c.Counts, value(c.Latency.TPOT.P50))
				}
			},
		},
		"buffered": {
			reply: func() openaitest.Script {
				var all string
				for _, step := range paced(0, 0, 10, 64).Steps {
					all += step.Write
				}
				return openaitest.Script{Steps: []openaitest.Step{{At: 190 * ms, Write: all}}}
			}(),
			warnings: "buffered",
		},
		"not streamed": {
			reply:  openaitest.Script{Type: "application/json", Steps: []openaitest.Step{{At: 190 * ms, Write: `{"choices":[{"text":"x","finish_reason":"length"}],"usage":{"prompt_tokens":64,"completion_tokens":10}}`}}},
			change: func(p *record.BenchPlan) { p.Stream = false },
			check: func(t *testing.T, c record.CaseReport) {
				if c.Latency.TTFT.Count != 0 || value(c.Latency.E2E.P50) != 0.19 || c.OutputTokensPerSecond < 50 {
					t.Errorf("TTFT %+v, E2E %v, %v tok/s", c.Latency.TTFT, value(c.Latency.E2E.P50), c.OutputTokensPerSecond)
				}
			},
		},
		"tokens by chunk": {
			reply: openaitest.Script{Steps: []openaitest.Step{
				{At: 100 * ms, Write: `data: {"choices":[{"text":"abcd"}],"usage":{"prompt_tokens":64,"completion_tokens":4}}` + "\n\n"},
				{At: 160 * ms, Write: `data: {"choices":[{"text":"abcdef","finish_reason":"length"}],"usage":{"prompt_tokens":64,"completion_tokens":10}}` + "\n\ndata: [DONE]\n\n"},
			}},
			check: func(t *testing.T, c record.CaseReport) {
				if value(c.Latency.ITL.P50) != 0.01 || value(c.Latency.ICL.P50) != 0.06 || value(c.Latency.TPOT.P50) != 0.01 || c.Latency.ITL.Count != 6*c.Latency.ICL.Count {
					t.Errorf("ITL %+v, ICL %+v, TPOT %+v", c.Latency.ITL, c.Latency.ICL, c.Latency.TPOT)
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 10, Concurrency: 1})
			p.DurationSeconds = 57
			s := &server{reply: func(int64) http.Handler { return test.reply }}
			if test.change != nil {
				test.change(&p)
			}
			if !p.Stream {
				s.probe = openaitest.Script{Type: "application/json", Steps: []openaitest.Step{{Write: `{"choices":[{"text":"x","finish_reason":"length"}]}`}}}
			}
			one := run(t, p, s, nil).report.Cases[0]
			if got := codes(one.Validity.Reasons); got != test.reasons {
				t.Errorf("reasons %q", got)
			}
			if got := codes(one.Validity.Warnings); test.reasons == "" && got != test.warnings {
				t.Errorf("warnings %q", got)
			}
			if test.check != nil {
				test.check(t, one)
			}
		})
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

func TestProgress(t *testing.T) {
	o := run(t, plan(record.BenchCase{Name: "c2", PromptTokens: 64, OutputTokens: 2, Concurrency: 2}),
		&server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}, nil)
	phases := map[any]int{}
	for _, e := range o.events {
		if e.Name != record.EventProgress {
			continue
		}
		phases[e.Fields["phase"]]++
		if *e.Total != 22 || *e.Done > 22 || e.Unit != "seconds" || e.Fields["in_flight"] != 2 && e.Fields["phase"] == "measure" {
			t.Errorf("event %+v", e)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}
	if phases["warm-up"] == 0 || phases["measure"] < 15 {
		t.Errorf("phases %v", phases)
	}
}

func TestProbe(t *testing.T) {
	c1 := record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1}
	tests := map[string]struct {
		change func(*record.BenchPlan)
		probe  http.Handler
		want   failure.Kind
		text   string
	}{
		"unknown model": {func(p *record.BenchPlan) { p.Target.Model = "x" }, nil, failure.NotFound, `model "x"`},
		"status 404":    {nil, openaitest.Script{Status: 404}, failure.NotFound, "404"},
		"status 401":    {nil, openaitest.Script{Status: 401}, failure.Denied, "401"},
		"too long":      {func(p *record.BenchPlan) { p.Cases[0].PromptTokens = 2047 }, nil, failure.Usage, "2048"},
		"text only":     {nil, paced(10*ms, ms, 1, 33), failure.Usage, "33 tokens"},
		"no key":        {func(p *record.BenchPlan) { p.Target.APIKeyEnv = "KEY" }, nil, failure.Usage, "KEY"},
		"not a plan":    {func(p *record.BenchPlan) { p.Cases = nil }, nil, failure.Usage, "no case"},
		"in-band error": {nil, openaitest.Script{Steps: []openaitest.Step{{At: ms, Write: "data: {\"error\":\"dead\"}\n\n"}}}, failure.Failed, "dead"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan(c1)
			if test.change != nil {
				test.change(&p)
			}
			o := run(t, p, &server{probe: test.probe, reply: func(int64) http.Handler { return paced(ms, ms, 2, 64) }}, nil)
			if failure.KindOf(o.err) != test.want || !strings.Contains(o.err.Error()+failure.HintOf(o.err), test.text) || len(o.report.Cases) != 0 {
				t.Errorf("got %v, hint %q", o.err, failure.HintOf(o.err))
			}
		})
	}
}

func TestThrottling(t *testing.T) {
	stat := fstest.MapFS{"cpu.stat": {Data: []byte("usage_usec 1\nnr_periods 5\nnr_throttled 3\n")}}
	o := run(t, plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1}),
		&server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}, func(d *bench.Deps) { d.Cgroup = stat })
	if n := o.report.Cases[0].Client.ThrottledPeriods; n == nil || *n != 0 {
		t.Errorf("throttled %v", n)
	}
}

func TestRecordsThatCannotBeWritten(t *testing.T) {
	o := run(t, plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1}),
		&server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}, func(d *bench.Deps) { d.Records = fullDisk{} })
	if o.err == nil || !strings.Contains(o.err.Error(), "write request records") || len(o.report.Cases) != 1 {
		t.Errorf("got %v with %d cases", o.err, len(o.report.Cases))
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// recordsFunc calls f for every request record of a run; wait returns when the
// last one was taken.
func recordsFunc(t *testing.T, f func(record.RequestRecord)) (w io.Writer, wait func()) {
	t.Helper()
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(reader)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var one record.RequestRecord
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
				t.Error(err)
			}
			if one.Case != "" {
				f(one)
			}
		}
	}()
	wait = func() {
		_ = writer.Close()
		<-ended
	}
	t.Cleanup(wait)
	return writer, wait
}
