package bench

import (
	"math"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// steady finds the steady window of a case while it runs, and integrates the
// number of requests in flight over it. The window starts once all of these are
// true: the warm-up is over, in-flight has reached 95 % of the target, and every
// request of the first wave has its first token (or has failed). An open loop has
// no target: it starts once, with the warm-up over, a request has ended and
// in-flight has come down to its mean over the latter half of the time so far,
// which it does not while it only grows (a form of the crossing-of-the-mean rule
// of Gafarian and others 1978). Rates that change on purpose never settle; their
// window is what follows the warm-up.
type steady struct {
	warmEnd, stop time.Time

	mu       sync.Mutex
	inFlight int
	peak     int
	full     int // in-flight that counts as full
	waiting  int // requests of the first wave without a first token
	reached  bool
	at       time.Time // when both were true; zero before
	last     time.Time // up to when the areas are known
	area     float64   // in-flight x seconds in the steady window
	fallback float64   // the same in [warmEnd, stop]

	settles bool // an open loop of a steady rate
	begun   time.Time
	gaveUp  bool        // it has not settled in half of its time
	level   stats.Level // of such a loop: in flight, by seconds since begun
}

func newSteady(start, warmEnd, stop time.Time, c record.BenchCase) *steady {
	s := &steady{
		warmEnd: warmEnd, stop: stop, last: start,
		full: int(math.Ceil(0.95 * float64(c.Concurrency))), waiting: c.Concurrency,
	}
	if c.Open() {
		s.settles, s.begun = len(c.Arrival.Stages) == 0 && c.Arrival.Trace == nil, start
	}
	// People who think are not in flight.
	if c.Sessions != nil && c.Sessions.ThinkSeconds > 0 {
		s.full = min(s.full, 1)
	}
	return s
}

// change counts requests that begin (+1) or end (-1).
func (s *steady) change(by int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	s.inFlight += by
	s.peak = max(s.peak, s.inFlight)
	s.reached = s.reached || s.inFlight >= s.full
	if s.settles {
		s.settle(by, now)
		return
	}
	s.check(now)
}

// firstToken says that one request of the first wave is past its prefill.
func (s *steady) firstToken(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.integrate(now)
	s.waiting--
	s.check(now)
}

func (s *steady) check(now time.Time) {
	if s.at.IsZero() && s.reached && s.waiting <= 0 {
		s.at = now
	}
}

// settle looks for the moment from which an open loop's load is there.
func (s *steady) settle(by int, now time.Time) {
	at := now.Sub(s.begun).Seconds()
	s.level.Change(float64(by), at)
	if !s.at.IsZero() || s.gaveUp {
		return
	}
	if now.After(s.warmEnd.Add(s.stop.Sub(s.warmEnd) / 2)) {
		s.gaveUp = true
		return
	}
	if by < 0 && s.level.Now() <= 1.05*s.level.Mean(at/2, at)+0.5 {
		s.at = now
	}
}

// parts is what the number in flight did in a window of such a loop.
func (s *steady) parts(w window) (parts []float64, peak float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level.Parts(w.start.Sub(s.begun).Seconds(), w.end.Sub(s.begun).Seconds(), stats.DriftParts)
}

func (s *steady) integrate(now time.Time) {
	// Two callers may have read the clock in the other order.
	if !now.After(s.last) {
		return
	}
	s.fallback += float64(s.inFlight) * overlap(s.last, now, s.warmEnd, s.stop)
	if !s.at.IsZero() {
		s.area += float64(s.inFlight) * overlap(s.last, now, later(s.warmEnd, s.at), s.stop)
	}
	s.last = now
}

// end moves the end of the window forward, where a case ends early.
func (s *steady) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.stop) {
		s.integrate(now)
		s.stop = now
	}
}

// start is the start of the window; known is false while it is not decided.
func (s *steady) start() (at time.Time, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return later(s.warmEnd, s.at), !s.at.IsZero() || s.gaveUp
}

func (s *steady) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight
}

func (s *steady) peakInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// window is the outcome, once every request has ended.
type window struct {
	start, end time.Time
	steady     bool
	inFlight   float64 // mean
}

func (w window) seconds() float64 { return w.end.Sub(w.start).Seconds() }

func (w window) holds(t time.Time) bool { return !t.Before(w.start) && t.Before(w.end) }

func (s *steady) window() window {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := window{start: later(s.warmEnd, s.at), end: s.stop, steady: !s.at.IsZero() && s.at.Before(s.stop)}
	area := s.area
	if !w.steady {
		w.start, area = s.warmEnd, s.fallback
	}
	if !w.start.Before(w.end) { // a case that ended in its warm-up
		w.start, w.steady = w.end, false
		return w
	}
	w.inFlight = area / w.seconds()
	return w
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// overlap is the length of [from, to] within [start, end] in seconds.
func overlap(from, to, start, end time.Time) float64 {
	if from.Before(start) {
		from = start
	}
	if to.After(end) {
		to = end
	}
	return max(to.Sub(from).Seconds(), 0)
}
