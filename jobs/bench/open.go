package bench

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// openAhead is how many requests of an open loop are made before it starts.
const openAhead = 1024

// maxInFlight is the limit of an open loop.
func maxInFlight(arrival workload.Arrival) int {
	if arrival.MaxInFlight > 0 {
		return arrival.MaxInFlight
	}
	return workload.DefaultMaxInFlight
}

// times are when the requests of the case are due, in seconds after its start.
func (l *loop) times(yield func(float64) bool) {
	warmup := l.run.plan.Warmup(l.c)
	seed := l.run.seed ^ uint64(workload.NewID(l.index, setArrivals, 0))
	l.c.Arrival.Times(seed, warmup, warmup+l.run.plan.Seconds(l.c))(yield)
}

// dueBefore counts the requests that are due before a moment of the case.
func (l *loop) dueBefore(seconds float64) int {
	n := 0
	for at := range l.times {
		if at >= seconds {
			break
		}
		n++
	}
	return n
}

// dispatch sends each request when it is due, whatever became of those before.
// Where the limit of requests in flight is reached it waits for one to end; the
// request keeps the time at which it was due, so that its effective latencies
// hold the wait (vllm#54101).
func (l *loop) dispatch(ctx context.Context) {
	r := l.run
	free := make(chan struct{}, maxInFlight(*l.c.Arrival))
	var sent sync.WaitGroup
	defer sent.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for at := range l.times {
		due := l.start.Add(duration(at))
		set := l.measured
		if due.Before(l.steady.warmEnd) {
			set = l.warmup
		}
		next := <-set
		if !waitUntil(ctx, timer, due, r.Now) || l.over(ctx, r.Now()) {
			break
		}
		held := false
		select {
		case free <- struct{}{}:
		default:
			held = true
			_, stop := l.bounds()
			timer.Reset(time.Until(stop))
			select {
			case free <- struct{}{}:
			case <-timer.C:
			case <-ctx.Done():
			}
			if l.over(ctx, r.Now()) {
				return
			}
		}
		sent.Go(func() {
			l.send(ctx, next, due, held, nil)
			<-free
		})
	}
	// Nothing more is due, but the case is as long as it was asked to be.
	if ctx.Err() == nil && !l.hopeless.reached() {
		_, stop := l.bounds()
		waitUntil(ctx, timer, stop, r.Now)
	}
	l.over(ctx, r.Now())
}

// waitUntil says whether the moment came before ctx ended.
func waitUntil(ctx context.Context, timer *time.Timer, at time.Time, now func() time.Time) bool {
	wait := at.Sub(now())
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// offered says what an open loop asked for in its window; nil for a closed one.
func (l *loop) offered(a *collected, w window) *record.OfferedLoad {
	if !l.c.Open() {
		return nil
	}
	due := l.dueBefore(w.end.Sub(l.start).Seconds()) - l.dueBefore(w.start.Sub(l.start).Seconds())
	load := &record.OfferedLoad{Due: due, Sent: a.dueSent, HeldBack: a.heldBack, MaxInFlight: maxInFlight(*l.c.Arrival), PeakInFlight: l.steady.peakInFlight()}
	if seconds := w.seconds(); seconds > 0 {
		load.RequestsPerSecond = float64(due) / seconds
	}
	return load
}
