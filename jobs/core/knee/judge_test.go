package knee_test

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/knee"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func TestJudge(t *testing.T) {
	p99, p90 := objective(t, "p99_e2e=30s"), objective(t, "p90_ttft=2s")
	tests := map[string]struct {
		misses  []knee.Misses
		last    bool
		verdict string
		sure    bool
		binding string
	}{
		"459 of 459 hold, as MLPerf has it": {[]knee.Misses{{Objective: p99, Of: 459}}, false, record.KneeHolds, true, ""},
		"458 are one too few":               {[]knee.Misses{{Objective: p99, Of: 458}}, false, record.KneeUndecided, false, ""},
		"458 by majority":                   {[]knee.Misses{{Objective: p99, Of: 458}}, true, record.KneeHolds, false, ""},
		"661 with one miss are too few":     {[]knee.Misses{{Objective: p99, Of: 661, Missed: 1}}, false, record.KneeUndecided, false, ""},
		"662 with one miss":                 {[]knee.Misses{{Objective: p99, Of: 662, Missed: 1}}, false, record.KneeHolds, true, ""},
		"clearly missed":                    {[]knee.Misses{{Objective: p99, Of: 30, Missed: 10}}, false, record.KneeFails, true, "p99_e2e"},
		"all of one queue":                  {[]knee.Misses{{Objective: p99, Of: 30, Missed: 10, Effect: 40}}, true, record.KneeFails, false, "p99_e2e"},
		"one of two fails":                  {[]knee.Misses{{Objective: p99, Of: 1000}, {Objective: p90, Of: 1000, Missed: 300}}, false, record.KneeFails, true, "p90_ttft"},
		"nothing seen":                      {[]knee.Misses{{Objective: p99}}, true, record.KneeUndecided, false, ""},
		"no objective":                      {nil, true, record.KneeUndecided, false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			verdict, sure, binding := knee.Judge(test.misses, 0.99, test.last)
			if verdict != test.verdict || sure != test.sure || binding != test.binding {
				t.Errorf("got %s, %v, %q", verdict, sure, binding)
			}
		})
	}
}

// options are those of a search for one objective.
func options(t *testing.T) knee.Options {
	return knee.Options{SLOs: []record.BenchSLO{objective(t, "p90_e2e=10s")}, BudgetSeconds: 1200, WarmupSeconds: 10, Precision: 0.1, Confidence: 0.95, MaxConcurrency: 64}
}

// drive answers every step by a rule until the search ends.
func drive(t *testing.T, o knee.Options, answer func(knee.Step) knee.Point) (record.KneeResult, []knee.Step) {
	t.Helper()
	search := knee.New(o)
	var steps []knee.Step
	for {
		step, more := search.Next()
		if !more {
			return search.Result(), steps
		}
		if steps = append(steps, step); len(steps) > 1000 {
			t.Fatal("the search does not end")
		}
		p := answer(step)
		p.Concurrency, p.Rate = step.Concurrency, step.Rate
		if p.Seconds == 0 {
			p.Seconds = step.Warmup + step.Window
		}
		search.Observe(p)
		// Asking for the answer so far must not decide where it can be: while closed
		// loops run, their highest throughput is not known.
		search.Result()
	}
}

// A server of 10 requests a second whose share of misses jumps from 0 to 1.
func sharp(limit float64) func(knee.Step) knee.Point {
	return func(step knee.Step) knee.Point {
		throughput := min(float64(step.Concurrency), 10)
		if step.Rate > 0 {
			throughput = min(step.Rate, 10)
		}
		n := int(throughput * step.Window)
		p := knee.Point{Throughput: throughput, Latency: max(1, float64(step.Concurrency)/10), Started: n}
		m := knee.Misses{Of: n}
		if m.Objective, _ = record.ParseSLO("p90_e2e=10s"); step.Rate > limit {
			m.Missed = n
		}
		p.Misses = []knee.Misses{m}
		return p
	}
}

func TestSearchEnds(t *testing.T) {
	tests := map[string]struct {
		limit    float64
		change   func(*knee.Options, *knee.Point)
		ended    string
		low, top float64
		says     string
	}{
		"no saturation seen":  {limit: 7.3, change: func(o *knee.Options, _ *knee.Point) { o.MaxConcurrency = 4 }, ended: record.KneeTight, low: 6.5, top: 8.1, says: "p90_e2e"},
		"a sharp limit":       {limit: 7.3, ended: record.KneeTight, low: 6.5, top: 8.1, says: "p90_e2e"},
		"saturation":          {limit: 99, ended: record.KneeTight, low: 9.5, top: 10.31, says: "saturation"},
		"nothing holds":       {limit: 0, ended: record.KneeNothing, says: "low load too"},
		"the client was slow": {limit: 5, change: func(_ *knee.Options, p *knee.Point) { p.Broken = "the client was the limit" }, ended: record.KneeBroken, says: "client was the limit"},
		"little time":         {limit: 7.3, change: func(o *knee.Options, _ *knee.Point) { o.BudgetSeconds = 60 }, ended: record.KneeBudget, low: 0.1, top: 41, says: "budget"},
		"nothing completed":   {limit: 5, change: func(_ *knee.Options, p *knee.Point) { p.Throughput = 0 }, ended: record.KneeNothing, says: "no rate was tried"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			change := test.change
			if change == nil {
				change = func(*knee.Options, *knee.Point) {}
			}
			change(&o, &knee.Point{})
			answer := sharp(test.limit)
			r, steps := drive(t, o, func(step knee.Step) knee.Point {
				p := answer(step)
				change(&knee.Options{}, &p)
				return p
			})
			if r.Ended != test.ended || !strings.Contains(r.Message, test.says) {
				t.Errorf("ended %q: %s", r.Ended, r.Message)
			}
			if (r.Rate != nil) != (test.top > 0) || r.Rate != nil && (*r.Rate < test.low || *r.Rate > test.top) {
				t.Errorf("%s", r.Message)
			}
			if len(r.Decisions) != len(steps) || r.Seconds > o.BudgetSeconds {
				t.Errorf("%d decisions of %d steps in %v s", len(r.Decisions), len(steps), r.Seconds)
			}
		})
	}
}

// A search that is given what an earlier one saw goes on where that one ended.
func TestSearchResumes(t *testing.T) {
	o, answer := options(t), sharp(7.3)
	whole, steps := drive(t, o, answer)
	again := knee.New(o)
	for i := range steps {
		step, more := again.Next()
		if !more || step != steps[i] {
			t.Fatalf("step %d is %+v, it was %+v", i, step, steps[i])
		}
		p := answer(step)
		p.Concurrency, p.Rate, p.Seconds = step.Concurrency, step.Rate, step.Warmup+step.Window
		again.Observe(p)
	}
	if again.Next(); *again.Result().Rate != *whole.Rate {
		t.Errorf("%v, then %v", *whole.Rate, *again.Result().Rate)
	}
}
