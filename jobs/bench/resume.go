package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// Names of the events of a run that goes on after a process was lost.
const (
	// EventResume says what is kept of an earlier process of the run.
	EventResume = "resume"
	// EventKeep is a warning: a case could not be kept yet.
	EventKeep = "keep"
)

// resume takes over what an earlier process of the run has finished.
func (r *run) resume(report *record.BenchReport) {
	attempt := record.BenchAttempt{Pod: r.Pod, Started: wall(r.base)}
	if before := r.Before; before != nil {
		report.Started, report.Attempts = before.Started, slices.Clone(before.Attempts)
		for _, one := range before.Cases {
			if !wasInterrupted(one) {
				report.Cases = append(report.Cases, one)
			}
		}
		attempt.CasesBefore = len(report.Cases)
		// The case that was lost has left its prompts in the prefix cache.
		r.seed = workload.Seed(r.plan.Seed, fmt.Sprintf("%s/%d", r.plan.Run, len(report.Attempts)))
		r.emit(record.Warning, EventResume, fmt.Sprintf("an earlier pod of this run was lost: %d of %d cases are kept, going on with the next", len(report.Cases), len(r.plan.Cases)), nil)
	}
	if r.Pod != "" {
		report.Attempts = append(report.Attempts, attempt)
	}
	report.Incomplete = len(report.Cases) < len(r.plan.Cases)
}

// wasInterrupted says whether a case was stopped with its process.
func wasInterrupted(report record.CaseReport) bool {
	return slices.ContainsFunc(report.Validity.Reasons, func(reason record.BenchFinding) bool { return reason.Code == reasonInterrupted })
}

func finished(report record.BenchReport, name string) bool {
	return slices.ContainsFunc(report.Cases, func(one record.CaseReport) bool { return one.Case.Name == name })
}

// keep saves what is finished. A case that cannot be kept now is kept with the
// next one, or at the end.
func (r *run) keep(ctx context.Context, report record.BenchReport) {
	if ctx.Err() != nil {
		return
	}
	if err := r.Checkpoint(ctx, report); err != nil {
		r.emit(record.Warning, EventKeep, "the report could not be saved yet: "+failure.Clean(err.Error()), nil)
	}
}
