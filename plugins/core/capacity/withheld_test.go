package capacity

import (
	"math/rand/v2"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// sound is a report with everything: each advice is given.
func sound() record.BenchReport {
	return engine{Batch: 16, Service: 1, Slow: .03}.measure("sound", []int{1, 2, 4, 8, 16, 32}, 900, rand.New(rand.NewPCG(1, 1)))
}

func each(report *record.BenchReport, change func(*record.CaseReport)) {
	for i := range report.Cases {
		change(&report.Cases[i])
	}
}

// advice lists what an envelope gives: "plan", "slo" and the triggers.
func advice(shape record.ShapeEnvelope) map[string]string {
	given := map[string]string{}
	note := func(name string, withheld *record.Notice) {
		given[name] = "given"
		if withheld != nil {
			given[name] = withheld.Code
		}
	}
	note("plan", shape.Capacity.XPlan.Withheld)
	note("slo", shape.Capacity.XSLO.Withheld)
	for _, one := range shape.Thresholds {
		note(one.Trigger, one.Withheld)
	}
	return given
}

// Every input that an advice rests on is taken away in turn: the advice must
// go with it, and the reason must take its place.
func TestAdviceIsWithheldWithItsEvidence(t *testing.T) {
	drop := func(signal string) func(*record.BenchReport) {
		return func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { delete(c.Server, signal) })
		}
	}
	all := func(code string) map[string]string {
		return map[string]string{
			"plan": code, "slo": code,
			record.TriggerKV: "no_plan", record.TriggerRunning: "no_plan", record.TriggerP99E2E: "no_plan",
		}
	}
	cases := map[string]struct {
		change func(*record.BenchReport)
		want   map[string]string
	}{
		"everything there":  {func(*record.BenchReport) {}, map[string]string{"plan": "given", "slo": "given", record.TriggerWaiting: "given", record.TriggerRunning: "given", record.TriggerKV: "given", record.TriggerP99E2E: "given"}},
		"no queue series":   {drop(record.SignalWaiting), map[string]string{record.TriggerWaiting: "no_metrics", record.TriggerRunning: "given"}},
		"no running series": {drop(record.SignalRunning), map[string]string{record.TriggerRunning: "no_metrics", record.TriggerWaiting: "given"}},
		"no KV series":      {drop(record.SignalKVCacheUsage), map[string]string{record.TriggerKV: "no_metrics"}},
		"no server at all":  {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Server = nil }) }, map[string]string{record.TriggerKV: "no_metrics", record.TriggerWaiting: "no_metrics", record.TriggerRunning: "no_metrics", record.TriggerP99E2E: "given"}},
		"few scrapes": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { c.Server[record.SignalRunning].Samples = 4 })
		}, map[string]string{record.TriggerRunning: "few_samples", record.TriggerKV: "given"}},
		"few requests":        {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Latency.E2E.Count = 100 }) }, map[string]string{record.TriggerP99E2E: "few_samples", "slo": "given"}},
		"hardly any requests": {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Latency.E2E.Count = 30 }) }, map[string]string{record.TriggerP99E2E: "no_plan", "slo": "few_samples", "plan": "few_samples"}},
		"no latencies": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { c.Latency = record.CaseLatencies{} })
		}, map[string]string{"slo": "no_latency", "plan": "no_latency"}},
		"KV is low": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { *c.Server[record.SignalKVCacheUsage].Mean /= 5 })
		}, map[string]string{record.TriggerKV: "kv_low"}},
		"KV hardly rises": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { *c.Server[record.SignalKVCacheUsage].Mean = .8 })
		}, map[string]string{record.TriggerKV: "flat"}},
		"KV is high when idle": {func(r *record.BenchReport) { *r.Cases[0].Server[record.SignalKVCacheUsage].Mean = .95 }, map[string]string{record.TriggerKV: "false_triggers"}},
		"a queue never forms": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { *c.Server[record.SignalWaiting].Mean = .1 })
		}, map[string]string{record.TriggerWaiting: "never_acts"}},
		"two loads": {func(r *record.BenchReport) { r.Cases = r.Cases[:2] }, map[string]string{"plan": "few_loads", record.TriggerRunning: "no_plan"}},
		"replicas changed": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { *c.Server[record.SignalReplicas].Max = 2 })
		}, map[string]string{"plan": "no_case"}},
		"client was the limit": {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Client.Limited = true }) }, map[string]string{"plan": "no_case"}},
		"invalid":              {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Validity.Valid = false }) }, map[string]string{"plan": "no_case"}},
		"no window":            {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Window.Seconds = 0 }) }, map[string]string{"plan": "no_case"}},
		"no counts":            {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Counts = record.CaseCounts{} }) }, map[string]string{"plan": "no_case"}},
		"slow from the start":  {func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { *c.Latency.E2E.P99 *= 100 }) }, all("slo_broken")},
		"errors from the start": {func(r *record.BenchReport) {
			each(r, func(c *record.CaseReport) { c.Counts.Failed = c.Counts.Started / 2 })
		}, map[string]string{"plan": "saturated", record.TriggerRunning: "no_plan"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			report := sound()
			test.change(&report)
			options := DefaultOptions()
			options.Resamples = 20
			options.SLOs = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 10}}
			got := advice(fold(t, options, report).Shapes[0])
			for what, want := range test.want {
				if got[what] != want {
					t.Errorf("%s is %q, want %q", what, got[what], want)
				}
			}
		})
	}
}

// Requests wait, the cache never preempts: the cache is not what fills up
// (llm-d/llm-d-autoscaling#1500, queueing at 16 % of the cache).
func TestKVIsWithheldWhereComputeIsTheLimit(t *testing.T) {
	report := sound()
	for i := range report.Cases {
		*report.Cases[i].Server[record.SignalWaiting].Mean = float64(i)
	}
	got := thresholdOf(t, fold(t, DefaultOptions(), report).Shapes[0], record.TriggerKV)
	if got.Withheld == nil || got.Withheld.Code != "compute_bound" {
		t.Errorf("withheld %+v, want compute_bound", got.Withheld)
	}
}

func TestExcludedCasesAreNamed(t *testing.T) {
	report := sound()
	report.Cases[2].Client.Limited = true
	report.Cases[3].Validity = record.Validity{Reasons: []record.BenchFinding{{Code: "short_output", Message: "7 replies were short"}}}
	*report.Cases[4].Server[record.SignalReplicas].Max = 3
	report.Cases[5].RequestsPerSecond = 0
	shape := fold(t, DefaultOptions(), report).Shapes[0]
	want := map[string]string{"c4": "client_limited", "c8": "short_output", "c16": "replicas_changed", "c32": "no_requests"}
	if len(shape.Excluded) != len(want) {
		t.Errorf("%d cases excluded, want %d", len(shape.Excluded), len(want))
	}
	for _, excluded := range shape.Excluded {
		if want[excluded.Case] != excluded.Reason.Code {
			t.Errorf("case %s excluded for %s, want %s", excluded.Case, excluded.Reason.Code, want[excluded.Case])
		}
	}
}

// No number that advises is without the cases it rests on.
func TestAdviceCarriesEvidence(t *testing.T) {
	options := DefaultOptions()
	options.SLOs = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 10}}
	shape := fold(t, options, sound()).Shapes[0]
	check := func(name string, evidence []record.Evidence) {
		if len(evidence) == 0 {
			t.Errorf("%s rests on nothing", name)
		}
		for _, one := range evidence {
			if one.Run == "" || one.Case == "" || one.WindowSeconds <= 0 || one.Requests <= 0 || one.Value == nil {
				t.Errorf("%s rests on %+v", name, one)
			}
		}
	}
	for name, rate := range map[string]record.Rate{
		"X_max": shape.Capacity.XMax, "X_sustain": shape.Capacity.XSustain, "X_slo": shape.Capacity.XSLO, "X_plan": shape.Capacity.XPlan,
	} {
		if rate.RequestsPerSecond == nil {
			t.Errorf("%s withheld: %+v", name, rate.Withheld)
		}
		check(name, rate.Evidence)
	}
	for _, one := range shape.Thresholds {
		if one.Threshold == nil {
			continue
		}
		check(one.Trigger, one.Evidence)
		for _, evidence := range one.Evidence {
			if evidence.Samples == nil || *evidence.Samples == 0 {
				t.Errorf("%s rests on no samples", one.Trigger)
			}
		}
	}
	for _, one := range shape.Knees {
		if one.Concurrency != nil {
			check(one.Rule, one.Evidence)
		}
	}
}
