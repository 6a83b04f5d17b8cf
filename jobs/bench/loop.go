package bench

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

const (
	// refusedPause is how long a slot rests after a request that failed at once:
	// without it a server that refuses is asked as fast as the client can.
	refusedPause = 50 * time.Millisecond
	// hopelessTime and hopelessRuns end a case in which nothing but failures came
	// for so long and so often.
	hopelessTime = 5 * time.Second
	hopelessRuns = 50
)

// observation is one request that is over.
type observation struct {
	id       workload.ID
	phase    string
	turn     int
	prompt   int // tokens asked for
	output   int
	due      time.Time
	heldBack bool // it was due while no more requests were allowed in flight
	reply    *openai.Reply
}

// loop sends the requests of one case.
type loop struct {
	run    *run
	index  int
	c      record.BenchCase
	steady *steady
	start  time.Time

	warmup, measured <-chan prepared
	left             atomic.Int64 // measured units of a case that ends by their number
	out              chan observation
	hopeless         hopeless
	stopper          stopper
}

// runCase measures one case. The error is that of writing records; a case that
// went wrong says so in its report.
func (r *run) runCase(ctx context.Context, index int) (record.CaseReport, error) {
	c := r.plan.Cases[index]
	caseCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &loop{run: r, index: index, c: c, out: make(chan observation, max(4*c.Concurrency, 64))}
	l.left.Store(math.MaxInt64)
	if c.Requests > 0 {
		l.left.Store(int64(c.Requests))
	}
	ahead, before := c.Concurrency, 0
	if c.Open() {
		ahead, before = openAhead, l.dueBefore(r.plan.Warmup(c))
	}
	l.warmup = source(caseCtx, maker{run: r, index: index, c: c, set: setWarmup, phase: record.PhaseWarmup}, min(ahead, max(before, c.Concurrency)))
	l.measured = source(caseCtx, maker{run: r, index: index, c: c, set: setMeasured, phase: record.PhaseMeasured, offset: uint64(before)}, ahead)
	l.start = r.Now()
	warmEnd := l.start.Add(duration(r.plan.Warmup(c)))
	l.steady = newSteady(l.start, warmEnd, warmEnd.Add(duration(r.plan.Seconds(c))), c)
	l.stopper = stopper{rules: r.plan.Stops(c)}
	l.hopeless = hopeless{runs: max(hopelessRuns, 2*c.Concurrency)}
	health := watchHealth(r.Deps, warmEnd, l.steady.stop)

	var senders sync.WaitGroup
	if c.Open() {
		senders.Go(func() { l.dispatch(ctx) })
	}
	for range c.Concurrency {
		senders.Go(func() { l.slot(ctx) })
	}
	go func() {
		senders.Wait()
		close(l.out)
	}()
	collected, err := l.collect(ctx)
	drained := r.Now()
	cancel()
	window := l.steady.window()
	report := collected.report(window, drained, l.start)
	report.Offered, report.Backlog, report.Stopped = l.offered(collected, window), l.backlog(window), l.stopper.found
	report.Client = health.stop(collected.slip)
	report.Client.BytesPerSecond, report.Client.ChunksPerSecond = collected.rate(collected.bytes), collected.rate(collected.chunks)
	report.Client.Limited = limited(report)
	missing, promErr := r.readServer(ctx, &report)
	report.Validity = verdict(r.plan, report, circumstances{
		interrupted: ctx.Err() != nil, hopeless: l.hopeless.reached(), buffered: collected.buffered, exact: r.prompts.exact(), missing: missing, prometheus: promErr,
	})
	return report, err
}

// slot sends one unit after the other until the case stops.
func (l *loop) slot(ctx context.Context) {
	r := l.run
	for first := true; ; first = false {
		due := r.Now()
		if l.over(ctx, due) || !l.take(due) {
			if first {
				l.steady.firstToken(due)
			}
			return
		}
		set := l.measured
		if due.Before(l.steady.warmEnd) {
			set = l.warmup
		}
		next := <-set
		var onToken func(time.Time)
		var once sync.Once
		if first {
			onToken = func(at time.Time) { once.Do(func() { l.steady.firstToken(at) }) }
		}
		succeeded, end := l.send(ctx, next, due, false, onToken)
		if !succeeded && end.Sub(due) < refusedPause {
			pause(ctx, refusedPause)
		}
	}
}

// take counts a unit of a case that ends by their number, whose last one ends
// the window too: then the senders stop.
func (l *loop) take(now time.Time) bool {
	if now.Before(l.steady.warmEnd) {
		return true
	}
	left := l.left.Add(-1)
	if left < 0 {
		// What other slots sent at this moment is inside.
		l.steady.end(now.Add(1))
	}
	return left >= 0
}

// send sends a unit and waits for its end. A session ends at its first failure,
// as its user would.
func (l *loop) send(ctx context.Context, unit prepared, due time.Time, heldBack bool, onToken func(time.Time)) (succeeded bool, end time.Time) {
	r := l.run
	for i, turn := range unit.turns {
		if i > 0 {
			if turn.think > 0 {
				pause(ctx, turn.think)
			}
			if due = r.Now(); l.over(ctx, due) {
				return true, due
			}
		}
		l.steady.change(+1, r.Now())
		reply := r.client.Do(ctx, r.plan.Target.API, turn.body, onToken)
		now := r.Now()
		if onToken != nil {
			onToken(now)
		}
		l.steady.change(-1, now)
		finishShort(reply, turn.output)
		// A whole document in place of a stream was held back too.
		if r.plan.Streams(l.c) && reply.Class == "" && reply.Chunks == 0 && reply.OutputTokens != 0 {
			reply.Flags = append(reply.Flags, openai.FlagBuffered)
		}
		l.out <- observation{
			id: unit.id, phase: unit.phase, turn: i, prompt: turn.prompt, output: turn.output, due: due, heldBack: heldBack && i == 0, reply: reply,
		}
		if reply.Class != "" {
			l.hopeless.failed(now)
			return false, now
		}
		l.hopeless.succeeded()
		onToken = nil
	}
	return true, r.Now()
}

// over says whether no further request is sent.
func (l *loop) over(ctx context.Context, now time.Time) bool {
	if ctx.Err() != nil || l.hopeless.reached() {
		l.steady.end(now)
		return true
	}
	_, end := l.bounds()
	return !now.Before(end)
}

func (l *loop) bounds() (start, end time.Time) {
	l.steady.mu.Lock()
	defer l.steady.mu.Unlock()
	return later(l.steady.warmEnd, l.steady.at), l.steady.stop
}

// finishShort files an answer that is shorter than was asked for: end of
// sequence was to be ignored, so the server did less work than the case says.
func finishShort(reply *openai.Reply, asked int) {
	if reply.Class != "" || reply.OutputTokens < 0 || reply.OutputTokens >= asked {
		return
	}
	reply.Class, reply.Failed = record.ErrorShortOutput, reply.End()
	reply.Message = fmt.Sprintf("%d of %d output tokens, finish_reason %q", reply.OutputTokens, asked, reply.FinishReason)
}

// pause waits, or returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hopeless notices that nothing succeeds any more.
type hopeless struct {
	mu    sync.Mutex
	runs  int // failures in a row that are too many
	row   int
	since time.Time
	over  bool
}

func (h *hopeless) succeeded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.row = 0
}

func (h *hopeless) failed(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.row++; h.row == 1 {
		h.since = now
	}
	h.over = h.over || h.row >= h.runs && now.Sub(h.since) >= hopelessTime
}

func (h *hopeless) reached() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}
