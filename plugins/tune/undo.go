package tune

import (
	"context"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// runUndo carries out the inverse of a plan.
func (o *options) runUndo(ctx context.Context) error {
	data, err := o.read(o.undo)
	if err != nil {
		return failure.New(failure.Usage, "", "read --undo: %w", err)
	}
	var done record.TuningPlan
	if err := decode(data, record.KindTuningPlan, &done); err != nil {
		return err
	}
	return o.carryOut(ctx, inverse(done))
}

// inverse returns the plan that takes done back. The triggers that were kept
// are none of its concern.
func inverse(done record.TuningPlan) record.TuningPlan {
	back := done
	back.Patch, back.Undo, back.Kept = done.Undo, done.Patch, []record.TuningKept{}
	back.Changes = []record.TuningChange{}
	for _, change := range done.Changes {
		change.From, change.To = change.To, change.From
		change.MetricType, change.PreviousMetricType = change.PreviousMetricType, change.MetricType
		change.Why = "taken back"
		after := change.ActsAboveAfter
		if change.ActsAboveBefore != nil {
			change.ActsAboveAfter = *change.ActsAboveBefore
		}
		change.ActsAboveBefore = &after
		back.Changes = append(back.Changes, change)
	}
	return back
}
