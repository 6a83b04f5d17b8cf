package store

import (
	"fmt"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Announce makes an OnRetry that tells of waits. Parallel requests wait for the
// same busy store at the same time: one line tells of it.
func Announce(emit func(record.Event), now func() time.Time) func(Retry) {
	var mu sync.Mutex
	var until time.Time
	return func(retry Retry) {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if at.Before(until) {
			return
		}
		until = at.Add(retry.Wait)
		emit(record.Event{
			Time: at.UTC(), Level: record.Warning, Name: record.EventRetry,
			Message: fmt.Sprintf("%s, trying again in %s (attempt %d of %d)", failure.Clean(retry.Err.Error()), retry.Wait.Round(100*time.Millisecond), retry.Attempt, retry.Attempts),
		})
	}
}
