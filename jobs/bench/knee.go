package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/knee"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// EventKnee says what a search measures next, and what it knows so far.
const EventKnee = "knee"

// closedInterval ends a closed loop of a search once its rate is known so well.
const closedInterval = 0.05

// findKnee carries out a search. Every case that it runs is an ordinary one. A
// search that an earlier process began goes on: the same cases lead to the same
// next one.
func (r *run) findKnee(ctx context.Context, report *record.BenchReport) error {
	k := *r.plan.FindKnee
	o := knee.Options{
		SLOs: r.plan.SLOs, BudgetSeconds: k.BudgetSeconds, WarmupSeconds: r.plan.WarmupSeconds,
		Precision: k.Precision, Confidence: k.Confidence, MaxConcurrency: k.MaxConcurrency,
	}
	if r.plan.Prometheus != nil {
		o.LagSeconds = r.plan.Prometheus.ScrapeLagSeconds
	}
	search := knee.New(o)
	before := report.Cases
	report.Cases, report.Incomplete = []record.CaseReport{}, true
	defer func() {
		result := search.Result()
		report.Knee = &result
	}()
	r.emit(record.Info, EventKnee, fmt.Sprintf("search: %.3g min at most: closed loops of 1, 2, 4 ... in flight for up to %.2g min, then Poisson arrivals about the limit; it ends when the interval is within %.3g %%",
		k.BudgetSeconds/60, knee.ClosedShare*k.BudgetSeconds/60, 100*k.Precision), nil)
	for {
		step, more := search.Next()
		if !more {
			break
		}
		index := len(report.Cases)
		var one record.CaseReport
		if index < len(before) {
			one = before[index]
			r.plan.Cases = append(r.plan.Cases, one.Case)
		} else {
			r.plan.Cases = append(r.plan.Cases, kneeCase(k, step, index))
			r.emit(record.Info, EventKnee, fmt.Sprintf("search: %s next, up to %.2g min: %s", r.plan.Cases[index].Name, (step.Warmup+step.Window)/60, step.Why), nil)
			var err error
			if one, err = r.runCase(ctx, index); err != nil {
				report.Cases = append(report.Cases, one)
				return err
			}
			r.emitCase(index, one)
		}
		report.Cases = append(report.Cases, one)
		report.Finished = wall(r.Now())
		decision := search.Observe(pointOf(one, o.LagSeconds))
		if index >= len(before) {
			r.emit(record.Info, EventKnee, "search: "+decision.Case+" "+decision.Verdict+": "+decision.Shown, map[string]any{"decision": decision})
		}
		result := search.Result()
		report.Knee = &result
		r.keep(ctx, *report)
		if ctx.Err() != nil {
			return failure.New(failure.Interrupted, "", "bench %s: stopped in case %q: %w", r.plan.Run, one.Case.Name, context.Cause(ctx))
		}
	}
	report.Incomplete = false
	result := search.Result()
	level := record.Info
	if result.Rate == nil {
		level = record.Warning
	}
	r.emit(level, EventKnee, "search: "+result.Message, map[string]any{"knee": result})
	if result.Ended == record.KneeBroken {
		return failure.New(failure.Differs, "the report has what was measured; mend that and search again", "bench %s: find knee: %s", r.plan.Run, result.Message)
	}
	if result.Ended == record.KneeNothing {
		return failure.New(failure.Differs, "relax the objective, or ask for shorter prompts and answers", "bench %s: find knee: %s", r.plan.Run, result.Message)
	}
	return nil
}

// kneeCase is the case that measures a step.
func kneeCase(k record.KneeSearch, step knee.Step, index int) record.BenchCase {
	c := k.Case
	c.WarmupSeconds, c.DurationSeconds, c.Reason = step.Warmup, step.Window, step.Why
	if step.Concurrency > 0 {
		c.Name, c.Concurrency = fmt.Sprintf("knee-%02d-c%d", index+1, step.Concurrency), step.Concurrency
		c.Stop = &record.StopRules{Interval: closedInterval}
		return c
	}
	c.Name = fmt.Sprintf("knee-%02d-r%.3g", index+1, step.Rate)
	c.Arrival = &workload.Arrival{Process: workload.Poisson, Rate: step.Rate}
	c.Stop = &record.StopRules{Objective: k.Confidence}
	return c
}

// unusable are the reasons for which a case says nothing about the server. That
// it was overloaded, or failed requests, does.
var unusable = []string{reasonInterrupted, "hopeless", "client_limited", "prompt_length", "replicas_changed", "prefix_cache"}

// pointOf is what a case shows a search.
func pointOf(report record.CaseReport, lag float64) knee.Point {
	p := knee.Point{
		Case: report.Case.Name, Concurrency: report.Case.Concurrency, Throughput: report.EdgeCorrectedPerSecond, Started: report.Counts.Started,
		Seconds: report.Window.RampSeconds + report.Window.Seconds + report.Window.DrainSeconds + lag,
	}
	if report.Case.Arrival != nil {
		p.Rate = report.Case.Arrival.Rate
	}
	if mean := report.Latency.E2E.Mean; mean != nil {
		p.Latency = *mean
	}
	for _, one := range report.Objectives {
		p.Misses = append(p.Misses, knee.Misses{Objective: one.Objective, Of: one.Met + one.Missed, Missed: one.Missed, Effect: one.Effect})
	}
	for _, reason := range report.Validity.Reasons {
		if slices.Contains(unusable, reason.Code) {
			p.Broken = reason.Message
		}
	}
	return p
}
