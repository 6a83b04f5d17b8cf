package sync

import (
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
	"github.com/kubectl-inference/kubectl-inference/jobs/store"
)

// The peers that a sync waits for, in the field "peer" of its retry events.
const (
	peerHub   = "hub"
	peerStore = "store"
)

// begins says whether a wait is news. Parallel transfers wait for the same busy
// server at the same time; one line tells of it, and another when the wait turns
// out to be clearly longer.
func (p *reporter) begins(what string, wait time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	until := now.Add(wait)
	if announced := p.until[what]; now.Before(announced) && until.Before(announced.Add(5*time.Second)) {
		return false
	}
	if p.until == nil {
		p.until = make(map[string]time.Time)
	}
	p.until[what] = until
	return true
}

// retry tells of a wait for the Hub.
func (p *reporter) retry(retry hub.Retry) {
	event := record.Event{Level: record.Warning, Name: EventRetry, Fields: map[string]any{
		"peer": peerHub, "what": retry.What, "wait_seconds": retry.Wait.Seconds(), "rate_limited": retry.RateLimited, "status": statusOf(retry.Err),
	}}
	if retry.RateLimited {
		if !p.begins("rate limit", retry.Wait) {
			return
		}
		event.Message = fmt.Sprintf("waiting %s for the Hub's rate limit (%s)", retry.Wait.Round(time.Second), retry.What)
	} else {
		event.Message = fmt.Sprintf("%s: %s, trying again in %s", retry.What, failure.Clean(retry.Err.Error()), retry.Wait.Round(100*time.Millisecond))
	}
	p.emit(event)
}

// storeRetry tells of a wait for the store.
func (p *reporter) storeRetry(retry store.Retry) {
	if !p.begins(peerStore, retry.Wait) {
		return
	}
	p.emit(record.Event{
		Level: record.Warning, Name: EventRetry,
		Message: fmt.Sprintf("%s, trying again in %s (attempt %d of %d)", failure.Clean(retry.Err.Error()), retry.Wait.Round(100*time.Millisecond), retry.Attempt, retry.Attempts),
		Fields:  map[string]any{"peer": peerStore, "wait_seconds": retry.Wait.Seconds(), "attempt": retry.Attempt, "attempts": retry.Attempts, "status": retry.Status()},
	})
}

// statusOf is the HTTP status that the Hub refused with, 0 where it sent none.
func statusOf(err error) int {
	var problem *hub.Error
	if errors.As(err, &problem) {
		return problem.Status
	}
	return 0
}
