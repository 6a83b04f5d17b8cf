package bench

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
	"github.com/kubectl-inference/kubectl-inference/jobs/prom"
)

const (
	// recent is the time that the rate of a progress event is of.
	recent = 10 * time.Second
	// lookEvery is how often the server's gauges are read for who watches: they
	// change with every scrape only.
	lookEvery = 5 * time.Second
)

// live is what a person who watches a case wants to see move: counts of the
// whole case so far, warm-up included.
type live struct {
	completed int
	tokens    int
	errors    map[record.ErrorClass]int
	failed    int
	e2e, ttft stats.Sample
	marks     []mark
	server    *serverNow
}

// mark is what was completed at one moment.
type mark struct {
	at                time.Time
	completed, tokens int
}

func (l *live) add(o observation) {
	if o.reply.Class != "" {
		if l.errors == nil {
			l.errors = map[record.ErrorClass]int{}
		}
		l.errors[o.reply.Class]++
		l.failed++
		return
	}
	l.completed++
	l.tokens += max(o.reply.OutputTokens, o.reply.Chunks)
	l.e2e.Add(o.reply.End().Sub(o.reply.Sent).Seconds())
	if !o.reply.FirstToken.IsZero() {
		l.ttft.Add(o.reply.FirstToken.Sub(o.reply.Sent).Seconds())
	}
}

// rates are the requests and output tokens a second of late.
func (l *live) rates(start, now time.Time) (requests, tokens float64, ok bool) {
	if len(l.marks) == 0 {
		l.marks = append(l.marks, mark{at: start})
	}
	l.marks = append(l.marks, mark{now, l.completed, l.tokens})
	for len(l.marks) > 2 && now.Sub(l.marks[1].at) >= recent {
		l.marks = l.marks[1:]
	}
	first := l.marks[0]
	seconds := now.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0, 0, false
	}
	return float64(l.completed-first.completed) / seconds, float64(l.tokens-first.tokens) / seconds, true
}

// progress tells where the case is, in words and as fields.
func (l *loop) progress(seen *live) {
	r := l.run
	now := r.Now()
	total := r.plan.Warmup(l.c) + r.plan.Seconds(l.c)
	gone := now.Sub(l.start).Seconds()
	phase := "measure"
	switch _, end := l.bounds(); {
	case now.Before(l.steady.warmEnd):
		phase = "warm-up"
	case !now.Before(end):
		phase = "drain"
	}
	inFlight := l.steady.now()
	fields := map[string]any{
		"case": l.c.Name, "case_number": l.index + 1, "cases": len(r.plan.Cases), "phase": phase,
		"in_flight": inFlight, "completed": seen.completed, "errors": seen.failed,
	}
	if !l.c.Open() {
		fields["concurrency"] = l.c.Concurrency
	}
	number := fmt.Sprintf("%d/%d", l.index+1, len(r.plan.Cases))
	if len(r.plan.Cases) == 0 {
		// A search does not know how many there will be.
		number = fmt.Sprint(l.index + 1)
	}
	text := fmt.Sprintf("case %s %s: %s, %d in flight, %d completed", number, l.c.Name, phase, inFlight, seen.completed)
	if seen.failed > 0 {
		fields["errors_by_class"] = maps.Clone(seen.errors)
		text += fmt.Sprintf(", %d FAILED (%s)", seen.failed, classes(seen.errors))
	}
	if requests, tokens, ok := seen.rates(l.start, now); ok {
		fields["requests_per_second"], fields["output_tokens_per_second"] = requests, tokens
		text += fmt.Sprintf(", %.3g req/s", requests)
	}
	if seen.ttft.Count() > 0 {
		p50, p99 := seen.ttft.Quantile(0.5), seen.ttft.Quantile(0.99)
		fields["ttft_p50_seconds"], fields["ttft_p99_seconds"] = p50, p99
		text += fmt.Sprintf(", TTFT p50 %.3gs p99 %.3gs", p50, p99)
	}
	if seen.e2e.Count() > 0 {
		p50, p99 := seen.e2e.Quantile(0.5), seen.e2e.Quantile(0.99)
		fields["p50_seconds"], fields["p99_seconds"] = p50, p99
		text += fmt.Sprintf(", E2E p50 %.3gs p99 %.3gs", p50, p99)
	}
	for signal, value := range seen.server.values() {
		fields[signal] = value
	}
	done, all := min(gone, total), 0.0
	for i, c := range r.plan.Cases {
		seconds := r.plan.Warmup(c) + r.plan.Seconds(c)
		if all += seconds; i < l.index {
			done += seconds
		}
	}
	if k := r.plan.FindKnee; k != nil {
		done, all = now.Sub(r.base).Seconds(), k.BudgetSeconds
	}
	r.Emit(record.Event{
		Time: wall(now), Level: record.Info, Name: record.EventProgress, Message: text,
		Done: &done, Total: &all, Unit: "seconds", Fields: fields,
	})
}

// serverNow is the newest look at the server's own gauges; it holds nothing
// where there is no Prometheus, or while that does not answer.
type serverNow struct {
	mu     sync.Mutex
	gauges map[string]float64
}

func (s *serverNow) values() map[string]float64 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gauges
}

// watchServer looks at the server until ctx ends.
func (r *run) watchServer(ctx context.Context) *serverNow {
	if r.prom == nil {
		return nil
	}
	seen := &serverNow{}
	from := r.plan.Prometheus
	go func() {
		for ctx.Err() == nil {
			gauges, err := r.prom.Now(ctx, prom.Selector(from.Namespace, from.PodRegex), r.Now())
			if err != nil {
				// The case's own reading will say what is wrong.
				gauges = nil
			}
			seen.mu.Lock()
			seen.gauges = gauges
			seen.mu.Unlock()
			pause(ctx, lookEvery)
		}
	}()
	return seen
}
