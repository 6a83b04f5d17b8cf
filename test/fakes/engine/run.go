package engine

import (
	"sync/atomic"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// maxLag is how far behind its own clock the engine may fall and still catch up. Short delays of a busy machine then
// do not change the capacity; after a long stop, such as a suspended process, the clock starts anew.
const maxLag = time.Second

// job is one sequence on its way through the engine. Its handler reads produced and done, the scheduler goroutine
// writes them and rings the bell.
type job struct {
	request model.Request
	reason  string // of finishing: length or stop
	seed    uint64 // of the output text
	quiet   bool   // ring only for the last token
	bell    chan struct{}

	produced atomic.Int32
	cached   atomic.Int32

	arrived, scheduled, first, last time.Time
}

// ring wakes the handler. One pending ring is enough, since the handler looks at the count.
func (j *job) ring() {
	select {
	case j.bell <- struct{}{}:
	default:
	}
}

// submit hands jobs to the scheduler.
func (e *Engine) submit(jobs []*job) {
	e.mu.Lock()
	e.incoming = append(e.incoming, jobs...)
	e.mu.Unlock()
	e.nudge()
}

// abort takes jobs out of the engine, unless they have finished.
func (e *Engine) abort(jobs []*job) {
	e.mu.Lock()
	e.leaving = append(e.leaving, jobs...)
	e.mu.Unlock()
	e.nudge()
}

// command runs f between two steps.
func (e *Engine) command(f func(*model.Scheduler)) {
	e.mu.Lock()
	e.commands = append(e.commands, f)
	e.mu.Unlock()
	e.nudge()
}

func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run is the scheduler: plan a step, let its time pass, deliver its tokens.
func (e *Engine) run() {
	defer close(e.ended)
	clock := e.config.Clock
	var due time.Time // the end of the step before, while busy
	for {
		e.accept()
		step := e.scheduler.Plan()
		e.metrics.state(e.scheduler)
		now := clock.Now()
		if len(step.Work) == 0 {
			due = time.Time{}
			select {
			case <-e.wake:
				continue
			case <-e.done:
				return
			}
		}
		for _, r := range step.Admitted {
			j := r.Owner.(*job)
			if j.scheduled.IsZero() {
				j.scheduled = now
				j.cached.Store(int32(r.CachedTokens()))
			}
		}
		if due.IsZero() || now.Sub(due) > maxLag {
			due = now
		}
		due = due.Add(time.Duration(float64(step.Duration) / e.config.Speed))
		if !e.sleep(due.Sub(now)) {
			return
		}
		e.deliver(step, clock.Now())
	}
}

// sleep returns false when the engine was closed.
func (e *Engine) sleep(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-e.done:
			return false
		default:
			return true
		}
	}
	fired, stop := e.config.Clock.Timer(d)
	select {
	case <-fired:
		return true
	case <-e.done:
		stop()
		return false
	}
}

// accept takes in what arrived since the last step.
func (e *Engine) accept() {
	e.mu.Lock()
	incoming, leaving, commands := e.incoming, e.leaving, e.commands
	e.incoming, e.leaving, e.commands = nil, nil, nil
	e.mu.Unlock()
	for _, j := range incoming {
		// The handler has checked the request, so that it can answer 400; what it let through fits.
		if err := e.scheduler.Add(&j.request); err == nil {
			continue
		}
		j.produced.Store(failed)
		j.ring()
	}
	for _, j := range leaving {
		if e.scheduler.Abort(&j.request) {
			e.metrics.aborted()
		}
	}
	for _, f := range commands {
		f(e.scheduler)
	}
}

// failed in job.produced says that the scheduler refused the request.
const failed = -1

// deliver completes a step and wakes the handlers of its tokens. The metrics come first, so that a client that has read
// its answer finds it counted.
func (e *Engine) deliver(step *model.Step, now time.Time) {
	tokens := e.scheduler.Complete(step)
	for _, t := range tokens {
		j := t.Request.Owner.(*job)
		if t.Index == 0 {
			j.first = now
			e.metrics.firstToken(now.Sub(j.arrived))
		} else {
			e.metrics.nextToken(now.Sub(j.last))
		}
		j.last = now
		if t.Last {
			e.metrics.finished(j)
		}
	}
	e.metrics.step(step, e.scheduler.Totals())
	e.metrics.state(e.scheduler)
	for _, t := range tokens {
		j := t.Request.Owner.(*job)
		j.produced.Store(int32(t.Index + 1))
		if t.Last || !j.quiet {
			j.ring()
		}
	}
}
