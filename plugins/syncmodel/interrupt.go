package syncmodel

import (
	"context"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// interrupted says what a run from here leaves behind when it is stopped by
// Ctrl-C: a Job would go on, this does not.
func interrupted(ctx context.Context, err error, left, format string, args ...any) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return failure.New(failure.Interrupted, left, format+" was interrupted", args...)
}
