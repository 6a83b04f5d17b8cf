package sync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/clock"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// claimed does the work while it holds the claim of a flat prefix. The claim
// goes with the success; otherwise it stays, without a holder.
func (r *run) claimed(ctx context.Context, work func(ctx context.Context) error) error {
	if !r.plan.Flat {
		return work(ctx)
	}
	waited, err := r.take(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancelCause(ctx)
	// A run that cannot renew its claim must stop before another may take it,
	// also while a renewal waits for a store that does not answer.
	expire := func() {
		stop(failure.New(failure.Unreachable, "run it again when the store answers: what was transferred is kept", "hold %s: the store took no renewal of this run's claim in time", r.location()))
	}
	safe := (claimLapse - 1) * r.deps.Beat
	expiry := time.AfterFunc(safe, expire)
	defer expiry.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for clock.Sleep(working, r.deps.Beat) == nil {
			// To its end, even if the work ends: a renewal that is on its way must
			// not arrive after the claim was given up.
			finish, cancel := context.WithTimeout(context.WithoutCancel(working), lastWords)
			begun := time.Now()
			err := r.change(finish, func(*claim) {})
			cancel()
			switch {
			case errors.Is(err, errHeld):
				stop(err)
			case err == nil && working.Err() == nil:
				expiry.Reset(safe - time.Since(begun))
			}
		}
	}()
	if err = r.refresh(working, waited); err == nil {
		err = work(working)
	}
	lost := context.Cause(working)
	stop(nil)
	<-ended
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if lost != nil && ctx.Err() == nil {
		return lost
	}
	if err != nil {
		// What it says is less than why the run failed; the claim lapses then.
		_ = r.change(clean, func(c *claim) { c.Run = "" })
		return err
	}
	if r.holds(clean) == nil {
		if err := r.bucket.Delete(clean, r.claimKey()); err != nil {
			r.warn(fmt.Sprintf("the claim of this prefix stays behind: %v", err))
		}
	}
	return nil
}
