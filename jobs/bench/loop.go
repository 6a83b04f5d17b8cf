package bench

import (
	"context"
	"fmt"
	"sync"
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
	prepared
	due   time.Time
	reply *openai.Reply
}

// loop keeps the requests of one case in flight.
type loop struct {
	run    *run
	index  int
	c      record.BenchCase
	steady *steady
	start  time.Time

	warmup, measured <-chan prepared
	out              chan observation
	hopeless         hopeless
}

// runCase measures one case. The error is that of writing records; a case that
// went wrong says so in its report.
func (r *run) runCase(ctx context.Context, index int) (record.CaseReport, error) {
	c := r.plan.Cases[index]
	caseCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := func(id workload.ID) []byte { return r.request(c, id).Body() }
	l := &loop{
		run: r, index: index, c: c,
		warmup:   source(caseCtx, index, setWarmup, record.PhaseWarmup, c.Concurrency, body),
		measured: source(caseCtx, index, setMeasured, record.PhaseMeasured, c.Concurrency, body),
		out:      make(chan observation, max(4*c.Concurrency, 64)),
	}
	l.start = r.Now()
	warmEnd := l.start.Add(duration(r.plan.WarmupSeconds))
	l.steady = newSteady(l.start, warmEnd, warmEnd.Add(duration(r.plan.DurationSeconds)), c.Concurrency)
	l.hopeless = hopeless{runs: max(hopelessRuns, 2*c.Concurrency)}
	health := watchHealth(r.Deps, warmEnd, l.steady.stop)

	var slots sync.WaitGroup
	for range c.Concurrency {
		slots.Go(func() { l.slot(ctx) })
	}
	go func() {
		slots.Wait()
		close(l.out)
	}()
	collected, err := l.collect(ctx)
	drained := r.Now()
	cancel()
	report := collected.report(l.steady.window(), drained, l.start)
	report.Client = health.stop(collected.slip)
	report.Client.BytesPerSecond, report.Client.ChunksPerSecond = collected.rate(collected.bytes), collected.rate(collected.chunks)
	report.Client.Limited = limited(report)
	missing, promErr := r.readServer(ctx, &report)
	report.Validity = verdict(r.plan, report, circumstances{
		interrupted: ctx.Err() != nil, hopeless: l.hopeless.reached(), buffered: collected.buffered, missing: missing, prometheus: promErr,
	})
	return report, err
}

// slot sends one request after the other until the case stops.
func (l *loop) slot(ctx context.Context) {
	r := l.run
	for first := true; ; first = false {
		due := r.Now()
		if l.over(ctx, due) {
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
		l.steady.change(+1, r.Now())
		var onToken func(time.Time)
		told := false
		if first {
			onToken = func(at time.Time) { told = true; l.steady.firstToken(at) }
		}
		reply := r.client.Do(ctx, r.plan.Target.API, next.body, onToken)
		now := r.Now()
		if first && !told {
			l.steady.firstToken(now)
		}
		l.steady.change(-1, now)
		finishShort(reply, l.c.OutputTokens)
		l.out <- observation{prepared: next, due: due, reply: reply}
		if reply.Class == "" {
			l.hopeless.succeeded()
			continue
		}
		l.hopeless.failed(now)
		if now.Sub(due) < refusedPause {
			pause(ctx, refusedPause)
		}
	}
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
