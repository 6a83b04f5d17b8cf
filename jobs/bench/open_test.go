package bench_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

func openCase(arrival workload.Arrival) record.BenchCase {
	return record.BenchCase{Name: "open", PromptTokens: 64, OutputTokens: 2, Arrival: &arrival}
}

// Requests are sent when they are due, however long answers take.
func TestOpenLoopKeepsItsTimes(t *testing.T) {
	for name, arrival := range map[string]workload.Arrival{
		"constant": {Process: workload.Constant, Rate: 4},
		"poisson":  {Process: workload.Poisson, Rate: 4},
		"gamma":    {Process: workload.Gamma, Rate: 4, Burstiness: 0.5},
		"stages":   {Process: workload.Constant, Stages: []workload.Stage{{Seconds: 10, FromRate: 1, ToRate: 7}, {Seconds: 10, FromRate: 7, ToRate: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, plan(openCase(arrival)), &server{reply: func(int64) http.Handler { return paced(2900*ms, 100*ms, 2, 64) }}, nil)
			if o.err != nil {
				t.Fatal(o.err)
			}
			one := o.report.Cases[0]
			slices.SortFunc(o.records, func(a, b record.RequestRecord) int { return int(1e6 * (a.Sent - b.Sent)) })
			for _, r := range o.records {
				if r.Sent != r.Due || *r.E2E != 3 {
					t.Fatalf("due at %v, sent at %v, E2E %v", r.Due, r.Sent, *r.E2E)
				}
			}
			if one.Offered.Due != one.Offered.Sent || one.Offered.Sent != one.Counts.Started || one.Offered.HeldBack != 0 || one.Offered.PeakInFlight < 10 {
				t.Errorf("offered %+v, counts %+v", one.Offered, one.Counts)
			}
			if name == "constant" && (one.Offered.RequestsPerSecond != 4 || len(o.records) != 88) {
				t.Errorf("offered %+v, %d records", one.Offered, len(o.records))
			}
			// The first request ends after 3 s: the window begins then, and not with the
			// end of the warm-up, 2 s, while the server still fills.
			if ramp := one.Window.RampSeconds; name != "stages" && (ramp < 3 || ramp > 6) {
				t.Errorf("ramp %v", ramp)
			}
			if !one.Validity.Valid || !one.Window.Steady || math.Abs(one.Window.Seconds+one.Window.RampSeconds-22) > 1e-6 || value(one.Latency.TTFTEff.P99) != 2.9 {
				t.Errorf("validity %+v, window %+v, TTFT %+v", one.Validity, one.Window, one.Latency.TTFTEff)
			}
		})
	}
}

// 40 requests a second with four in flight and 190 ms each: TTFT stays what the
// server does, the effective one grows to seconds, and the rate is said not to be
// achieved (vllm#54101).
func TestOpenLoopHeldBack(t *testing.T) {
	o := run(t, plan(openCase(workload.Arrival{Process: workload.Constant, Rate: 40, MaxInFlight: 4})),
		&server{reply: func(int64) http.Handler { return paced(180*ms, 10*ms, 2, 64) }}, nil)
	one := o.report.Cases[0]
	if value(one.Latency.TTFT.P99) != 0.18 || value(one.Latency.TTFTEff.P99) < 8 || value(one.Latency.E2EEff.P50) < 3 {
		t.Errorf("TTFT p99 %v, effective %v", value(one.Latency.TTFT.P99), value(one.Latency.TTFTEff.P99))
	}
	if got := codes(one.Validity.Warnings); !strings.Contains(got, "rate_not_achieved") || one.Client.Limited {
		t.Errorf("warnings %q, limited %v", got, one.Client.Limited)
	}
	if one.Offered.Due != 800 || one.Offered.PeakInFlight != 4 || one.Offered.HeldBack < 200 || one.Offered.Sent >= 450 {
		t.Errorf("offered %+v", one.Offered)
	}
	if math.Abs(one.RequestsPerSecond-4/0.19) > 0.2 {
		t.Errorf("rate %v", one.RequestsPerSecond)
	}
}

// A rate at which nothing would be sent is refused (guidellm#115).
func TestOpenLoopTooSlow(t *testing.T) {
	p := plan(openCase(workload.Arrival{Process: workload.Poisson, Rate: 0.005}))
	if err := p.Validate(); failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
}

// A server that never answers three requests: the run ends in time, with three
// timeouts (guidellm#1152, perf_analyzer#320).
func TestOpenLoopNeverAnswered(t *testing.T) {
	p := plan(openCase(workload.Arrival{Process: workload.Constant, Rate: 5}))
	p.MaxErrorRate, p.RequestTimeoutSeconds = 0.05, 30
	o := run(t, p, &server{reply: func(n int64) http.Handler {
		if n == 30 || n == 40 || n == 50 {
			return openaitest.Script{Hold: true}
		}
		return paced(100*ms, 10*ms, 2, 64)
	}}, nil)
	one := o.report.Cases[0]
	if one.Counts.Errors[record.ErrorTimeoutTotal] != 3 || one.Window.DrainSeconds > 30 || o.err != nil {
		t.Errorf("counts %+v, window %+v, %v", one.Counts, one.Window, o.err)
	}
}

func TestTraceReplay(t *testing.T) {
	trace := &workload.Trace{AtSeconds: []float64{0, 1, 2.5, 4}, PromptTokens: []int{700, 600, 550, 20}, OutputTokens: []int{2, 2, 2, 2}, HashIDs: [][]uint64{{1, 2}, {1, 3}, {1, 4}, nil}}
	p := plan(record.BenchCase{Name: "trace", PromptTokens: 625, OutputTokens: 2, Arrival: &workload.Arrival{Process: workload.Replay, Trace: trace}, DurationSeconds: 3})
	o := run(t, p, promptLengths(&server{reply: func(int64) http.Handler { return paced(100*ms, 10*ms, 2, 64) }}), nil)
	if o.err != nil {
		t.Fatal(o.err)
	}
	var due []float64
	var prompts []int
	for _, r := range o.records {
		due, prompts = append(due, r.Due), append(prompts, r.PromptAsked)
	}
	begin := due[0]
	for i := range due {
		due[i] = math.Round(1000*(due[i]-begin)) / 1000
	}
	if fmt.Sprint(due) != "[0 1 2.5 4]" || fmt.Sprint(prompts) != "[700 600 550 20]" || o.report.Cases[0].Counts.Started != 2 {
		t.Errorf("due %v, prompts %v, counts %+v", due, prompts, o.report.Cases[0].Counts)
	}
	if n := o.report.Cases[0].Counts.PromptMismatch; n != 0 {
		t.Errorf("%d prompts of another length", n)
	}
}

// promptLengths makes a server state the length of the prompt that it got.
func promptLengths(s *server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct{ Prompt []int }
		if json.Unmarshal(body, &request) != nil || len(request.Prompt) == 16 || len(request.Prompt) == 0 {
			s.ServeHTTP(w, r)
			return
		}
		reply := s.reply
		length := len(request.Prompt)
		inner := server{probe: nil, reply: reply}
		inner.requests.Store(s.requests.Add(1))
		paced(100*ms, 10*ms, 2, length).ServeHTTP(w, r)
	})
}

// Sessions: each turn begins with the prompt of the one before, a think time
// after its answer; one session is in a slot at a time.
func TestSessions(t *testing.T) {
	var mutex sync.Mutex
	var prompts [][]int
	p := plan(record.BenchCase{Name: "chat", PromptTokens: 64, OutputTokens: 2, Concurrency: 1, Sessions: &workload.Sessions{Turns: 3, NewTokens: 30, ThinkSeconds: 1}})
	inner := promptLengths(&server{reply: func(int64) http.Handler { return paced(100*ms, 10*ms, 2, 64) }})
	o := run(t, p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct{ Prompt []int }
		if json.Unmarshal(body, &request) == nil && len(request.Prompt) > 16 {
			mutex.Lock()
			prompts = append(prompts, request.Prompt)
			mutex.Unlock()
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		inner.ServeHTTP(w, r)
	}), nil)
	if o.err != nil {
		t.Fatal(o.err)
	}
	for i := range 9 {
		turn := i % 3
		if o.records[i].Turn != turn || len(prompts[i]) != 64+32*turn || o.records[i].PromptAsked != len(prompts[i]) {
			t.Fatalf("record %d: turn %d, prompt of %d", i, o.records[i].Turn, len(prompts[i]))
		}
		if turn == 0 {
			continue
		}
		if !slices.Equal(prompts[i-1], prompts[i][:len(prompts[i-1])]) {
			t.Errorf("turn %d does not begin with the one before", turn)
		}
		if think := o.records[i].Sent - o.records[i-1].End; math.Abs(think-1) > 1e-5 {
			t.Errorf("turn %d came after %v s", turn, think)
		}
	}
	if one := o.report.Cases[0]; !one.Validity.Valid || one.Counts.PromptMismatch != 0 {
		t.Errorf("validity %+v", one.Validity)
	}
}

// A closed loop by count sends exactly that many, then the window ends.
func TestRequestsByCount(t *testing.T) {
	c := record.BenchCase{Name: "c4", PromptTokens: 64, OutputTokens: 2, Concurrency: 4, Requests: 50}
	o := run(t, plan(c), &server{reply: func(int64) http.Handler { return paced(100*ms, 100*ms, 2, 64) }}, nil)
	measured := 0
	for _, r := range o.records {
		if r.Phase == record.PhaseMeasured {
			measured++
		}
	}
	one := o.report.Cases[0]
	if measured != 50 || one.Counts.Started != 50 || one.Window.Seconds < 2.3 || one.Window.Seconds > 2.7 {
		t.Errorf("%d measured, counts %+v, window %+v", measured, one.Counts, one.Window)
	}
}

// Distributions: each request's own length is what is asked for and verified.
func TestLengthDistributions(t *testing.T) {
	lengths, err := workload.ParseLengths("uniform:20:400")
	if err != nil {
		t.Fatal(err)
	}
	c := record.BenchCase{Name: "mixed", PromptTokens: 210, OutputTokens: 2, Concurrency: 3, PromptLengths: &lengths}
	o := run(t, plan(c), promptLengths(&server{reply: func(int64) http.Handler { return paced(100*ms, 10*ms, 2, 64) }}), nil)
	seen := map[int]bool{}
	for _, r := range o.records {
		seen[r.PromptAsked] = true
		if *r.PromptTokens != r.PromptAsked {
			t.Fatalf("asked for %d, counted %d", r.PromptAsked, *r.PromptTokens)
		}
	}
	if one := o.report.Cases[0]; len(seen) < 100 || one.Counts.PromptMismatch != 0 || one.Case.Shape() != "~210/2" {
		t.Errorf("%d lengths, %d off, shape %s", len(seen), one.Counts.PromptMismatch, one.Case.Shape())
	}
}
