package bench_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

func quick() *server {
	return &server{reply: func(int64) http.Handler { return paced(150*ms, 50*ms, 2, 64) }}
}

// Cases end early by each rule, and say so (guidellm#105, guidellm#108).
func TestStopRules(t *testing.T) {
	closed := record.BenchCase{Name: "c", PromptTokens: 64, OutputTokens: 2, Concurrency: 2}
	half := &server{reply: func(n int64) http.Handler {
		if n%2 == 0 {
			return openaitest.Script{Status: 503}
		}
		return paced(150*ms, 50*ms, 2, 64)
	}}
	over := &server{reply: func(n int64) http.Handler { return paced(150*ms, time.Duration(n)*50*ms, 2, 64) }} // ever slower
	tests := map[string]struct {
		c      record.BenchCase
		rules  record.StopRules
		server http.Handler
		slo    float64
		code   string
	}{
		"the rate is known":       {closed, record.StopRules{Interval: 0.05}, quick(), 0, record.StopInterval},
		"too many errors":         {closed, record.StopRules{Errors: true}, half, 0, record.StopErrors},
		"the objective holds":     {closed, record.StopRules{Objective: 0.95}, quick(), 1, record.StopHeld},
		"the objective is missed": {closed, record.StopRules{Objective: 0.95}, quick(), 0.1, record.StopMissed},
		"requests pile up":        {openCase(workload.Arrival{Process: workload.Poisson, Rate: 10}), record.StopRules{Saturated: true}, over, 0, record.StopSaturated},
		"no rule":                 {closed, record.StopRules{}, quick(), 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan(test.c)
			p.DurationSeconds, p.RequestTimeoutSeconds, p.Stop, p.MaxErrorRate = 300, 900, &test.rules, 0.1
			if test.slo > 0 {
				p.SLOs = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 95, MaxSeconds: test.slo}}
			}
			o := run(t, p, test.server, nil)
			one := o.report.Cases[0]
			code := ""
			if one.Stopped != nil {
				code = one.Stopped.Code
			}
			if code != test.code {
				t.Fatalf("stopped by %q, backlog %+v, %v", code, one.Backlog, o.err)
			}
			if code != "" && one.Window.Seconds > 150 || code == "" && one.Window.Seconds != 300 {
				t.Errorf("the window is of %v s", one.Window.Seconds)
			}
			if last := o.events[len(o.events)-1].Message; code != "" && !strings.Contains(last, "ended early") {
				t.Errorf("it is not said: %s", last)
			}
			if test.code == record.StopSaturated && codes(one.Validity.Reasons) != "over_saturated" {
				t.Errorf("reasons %q, window %+v", codes(one.Validity.Reasons), one.Window)
			}
		})
	}
}

// More requests in flight than a server that is saturated serves are left out.
func TestSaturatedClosedLoopsAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, err := engine.New(engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fake.Close() })
		var cases []record.BenchCase
		for _, n := range []int{2, 40, 60, 80, 100} {
			cases = append(cases, record.BenchCase{Name: fmt.Sprintf("c%d", n), PromptTokens: 64, OutputTokens: 16, Concurrency: n})
		}
		p := plan(cases...)
		p.WarmupSeconds, p.DurationSeconds, p.Stop = 10, 60, &record.StopRules{Saturated: true}
		report, err := bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, fake)})
		if err != nil || names(report) != "c2 c40 c60" || len(report.Skipped) != 2 || report.Incomplete {
			t.Fatalf("%s, skipped %+v, %v", names(report), report.Skipped, err)
		}
	})
}

// A share of good requests below what was asked for is the answer no, exit code
// 3; an objective that is missed alone is not.
func TestMinGoodput(t *testing.T) {
	for name, test := range map[string]struct {
		least float64
		want  failure.Kind
	}{"asked for": {0.99, failure.Differs}, "not asked for": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			p := plan(record.BenchCase{Name: "c", PromptTokens: 64, OutputTokens: 2, Concurrency: 2})
			p.SLOs, p.MinGoodput = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 0.1}}, test.least
			o := run(t, p, quick(), nil)
			if (test.want == 0) != (o.err == nil) || o.err != nil && failure.KindOf(o.err) != test.want {
				t.Errorf("got %v", o.err)
			}
		})
	}
}

// The whole search through real HTTP against the engine, on virtual time: its
// cases are ordinary ones, and a replaced pod goes on with the next.
func TestFindKnee(t *testing.T) {
	find := func(before *record.BenchReport) (report record.BenchReport, cases int) {
		synctest.Test(t, func(t *testing.T) {
			fake, err := engine.New(engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = fake.Close() })
			p := plan()
			p.WarmupSeconds, p.SLOs = 5, []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 90, MaxSeconds: 2}}
			p.FindKnee = &record.KneeSearch{
				Case: record.BenchCase{PromptTokens: 64, OutputTokens: 16}, BudgetSeconds: 300, Precision: 0.1, Confidence: 0.95, MaxConcurrency: 64,
			}
			report, err = bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, fake), Pod: "p", Before: before, Emit: func(e record.Event) {
				if e.Name == bench.EventCase {
					cases++
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
		})
		return report, cases
	}
	report, _ := find(nil)
	k := report.Knee
	if k == nil || k.Rate == nil || k.Seconds > 330 || report.Incomplete {
		t.Fatalf("knee %+v", k)
	}
	for i, d := range k.Decisions {
		if one := report.Cases[i].Case; one.Name != d.Case || one.Reason == "" || one.Concurrency == 0 && one.Arrival == nil {
			t.Errorf("decision %+v of case %+v", d, one)
		}
	}
	t.Log(k.Message)
	half := report
	half.Cases = report.Cases[:len(report.Cases)/2]
	again, cases := find(&half)
	if len(again.Cases) <= len(half.Cases) || cases != len(again.Cases)-len(half.Cases) || again.Knee == nil || again.Knee.Rate == nil {
		t.Fatalf("%d cases after %d, %d run", len(again.Cases), len(half.Cases), cases)
	}
	if off := math.Abs(*again.Knee.Rate-*k.Rate) / *k.Rate; off > 0.1 {
		t.Errorf("%v, after a restart %v", *k.Rate, *again.Knee.Rate)
	}
}
