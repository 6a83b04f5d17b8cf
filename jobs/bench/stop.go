package bench

import (
	"fmt"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/knee"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

const (
	// lookLives and lookLeast are how many requests after another, and how many
	// altogether, a window holds before a rule may end it.
	lookLives, lookLeast = 3, 40
	// fewErrors are too few to end a case for.
	fewErrors = 5
	// driftArrivals are needed to end a case for its backlog.
	driftArrivals = 200
)

// stopper ends a case by the rules of its plan.
type stopper struct {
	rules record.StopRules
	next  int // requests at which to look again
	found *record.BenchFinding
}

// stopEarly ends the window where a rule says so. Each look at the same numbers
// may err, so they are few: one each time that the requests have grown by a
// quarter.
func (l *loop) stopEarly(a *collected) {
	s := &l.stopper
	seen := a.counts.Completed + a.counts.Failed
	if s.rules == (record.StopRules{}) || s.found != nil || seen < max(s.next, lookLeast/2) {
		return
	}
	s.next = seen + max(seen/4, 1)
	now := l.run.Now()
	if code, message := l.rule(a, now); code != "" {
		s.found = &record.BenchFinding{Code: code, Message: message}
		l.steady.end(now)
	}
}

// rule is the code of the rule that ends the case now, or "".
func (l *loop) rule(a *collected, now time.Time) (code, message string) {
	rules, counts := l.stopper.rules, a.counts
	if low, _ := stats.ShareBounds(counts.Failed, counts.Started, confidence); rules.Errors && counts.Failed >= fewErrors && low > l.run.plan.MaxErrorRate {
		return record.StopErrors, fmt.Sprintf("%d of %d requests failed, more than the plan allows", counts.Failed, counts.Started)
	}
	so := window{start: a.window.start, end: now}
	if rules.Saturated && l.steady.settles && counts.Started >= driftArrivals {
		if parts, peak := l.steady.parts(so); len(parts) > 0 {
			if drift, _ := stats.DriftOf(parts, peak, counts.Started); drift == stats.DriftOver {
				return record.StopSaturated, fmt.Sprintf("requests pile up: %.0f in flight, and growing", parts[len(parts)-1])
			}
		}
	}
	if counts.Completed < lookLeast || so.seconds() < lookLives*a.e2e.Mean() {
		return "", ""
	}
	if rules.Objective > 0 {
		switch verdict, sure, binding := knee.Judge(a.tally.Misses(), rules.Objective, false); {
		case sure && verdict == record.KneeHolds:
			return record.StopHeld, fmt.Sprintf("%d requests show with %.4g %% confidence that the objectives hold", a.tally.Requests(), 100*rules.Objective)
		case sure:
			return record.StopMissed, fmt.Sprintf("%d requests show with %.4g %% confidence that %s is missed", a.tally.Requests(), 100*rules.Objective, binding)
		}
	}
	if rules.Interval > 0 {
		whole := a.window
		a.window = so
		low, high, ok := a.rateInterval()
		rate := a.rate(float64(counts.Completed))
		a.window = whole
		if ok && rate > 0 && high-low <= 2*rules.Interval*rate {
			return record.StopInterval, fmt.Sprintf("the rate is known: %.3g req/s, %.3g to %.3g", rate, low, high)
		}
	}
	return "", ""
}

// backlog describes an open loop of a steady rate; nil for others.
func (l *loop) backlog(w window) *record.Backlog {
	if !l.steady.settles || w.seconds() <= 0 {
		return nil
	}
	parts, peak := l.steady.parts(w)
	arrivals := l.dueBefore(w.end.Sub(l.start).Seconds()) - l.dueBefore(w.start.Sub(l.start).Seconds())
	drift, score := stats.DriftOf(parts, peak, arrivals)
	b := &record.Backlog{Drift: string(drift), Score: score, Peak: peak}
	const quarter = stats.DriftParts / 4
	for i := range quarter {
		b.First += parts[i] / quarter
		b.Last += parts[stats.DriftParts-1-i] / quarter
	}
	return b
}
