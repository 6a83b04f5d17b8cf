package sync

import (
	"context"
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// EventHeld tells that another Job is at work on the same prefix.
const EventHeld = "held"

// hold keeps two Jobs from bringing the same files over. Whoever had to wait
// finds the manifest complete, or goes on where a holder that died stopped.
// Without a Lease the conditional write of the manifest still decides.
func (r *run) hold(ctx context.Context) (release func(), err error) {
	nothing := func() {}
	if r.deps.Hold == nil || r.plan.DryRun {
		return nothing, nil
	}
	bucket, _, err := r.plan.Bucket()
	if err != nil {
		return nothing, err
	}
	release, err = r.deps.Hold(ctx, bucket, r.prefix, func(holder string) {
		r.report.emit(record.Event{
			Name: EventHeld, Message: fmt.Sprintf("another Job (%s) is syncing this prefix; this one takes over once it ends", failure.Clean(holder)),
			Fields: map[string]any{"holder": holder},
		})
	})
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	if err != nil {
		r.warn(fmt.Sprintf("two Jobs of this prefix are not kept apart: %v", err))
		return nothing, nil
	}
	return release, nil
}
