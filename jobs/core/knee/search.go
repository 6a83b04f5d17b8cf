package knee

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Options are what a search goes by.
type Options struct {
	SLOs          []record.BenchSLO // at least one
	BudgetSeconds float64
	// WarmupSeconds is the least warm-up of a case, LagSeconds what it costs after
	// its window: the wait for the last scrape.
	WarmupSeconds, LagSeconds float64
	// Precision is how narrow the answer's interval must get, as a share of it.
	Precision      float64
	Confidence     float64
	MaxConcurrency int
}

// Step is what to measure next: a closed loop of Concurrency, or Poisson arrivals
// at Rate.
type Step struct {
	Concurrency    int
	Rate           float64
	Warmup, Window float64 // seconds
	Why            string
}

// Point is what a step showed.
type Point struct {
	Case        string
	Concurrency int
	Rate        float64
	Throughput  float64 // completed requests a second
	Latency     float64 // mean, send to end, in seconds; 0 where unknown
	Started     int     // requests of the window
	Misses      []Misses
	Seconds     float64 // of everything: warm-up, window, drain
	// Broken is why the case cannot be used, such as a client that was the limit;
	// "" where it can.
	Broken string
}

const (
	// flatGain is the growth of throughput by a doubling of concurrency below
	// which a server is saturated.
	flatGain = 1.10
	// ClosedShare is the share of the budget that the closed loops may take.
	ClosedShare = 0.35
	// ceiling is the highest rate, as a share of the saturation throughput, that
	// the answer may be: nothing serves more, and the throughput is known to a few
	// percent. floor is the lowest.
	ceiling, floor = 1.03, 0.02
	// openCeiling takes its place where no saturation was seen.
	openCeiling = 4
	// trials is the number of trials among which the budget that is left is
	// divided; trials that are decided early leave more.
	trials = 6
	// lives is how many latencies a warm-up should last, so that the queue has
	// found its length.
	lives = 3
	// nothingBelow is the share of the saturation throughput below which nothing
	// is said to hold.
	nothingBelow = 2 * floor
)

// Search is a search under way.
type Search struct {
	o     Options
	spent float64

	closed    []Point
	closedEnd string // why the closed loops ended; "" while they go on
	missed    bool   // an objective, for sure, in the last closed loop

	known     []*posterior // by objective, once the closed loops are over
	tried     []Point
	broken    string
	decisions []record.KneeDecision
	next      Step
}

// New begins a search.
func New(o Options) *Search { return &Search{o: o, decisions: []record.KneeDecision{}} }

// Next says what to measure; more is false when the search is over.
func (s *Search) Next() (step Step, more bool) {
	if s.broken != "" {
		return Step{}, false
	}
	if s.closedEnd == "" {
		if step, more := s.nextClosed(); more {
			s.next = step
			return step, true
		}
	}
	step, ended := s.nextOpen()
	s.next = step
	return step, ended == ""
}

// nextClosed is the next doubling.
func (s *Search) nextClosed() (Step, bool) {
	longest := ClosedShare * s.o.BudgetSeconds / 5
	step := Step{Concurrency: 1, Warmup: s.o.WarmupSeconds, Window: longest, Why: "how long one request takes alone"}
	if n := len(s.closed); n > 0 {
		last := s.closed[n-1]
		if last.Concurrency >= s.o.MaxConcurrency {
			s.closedEnd = fmt.Sprintf("%d in flight is the most that was allowed", last.Concurrency)
			return Step{}, false
		}
		step.Concurrency = min(2*last.Concurrency, s.o.MaxConcurrency)
		// Twice the requests take at most twice as long.
		if last.Latency > 0 {
			step.Window = min(max(8*last.Latency, 10), longest)
		}
		step.Why = fmt.Sprintf("twice as many: %d gave %.3g req/s", last.Concurrency, last.Throughput)
	}
	if len(s.closed) > 0 && s.spent+step.Warmup+step.Window+s.o.LagSeconds > ClosedShare*s.o.BudgetSeconds {
		s.closedEnd = fmt.Sprintf("closed loops have had their %.0f %% of the budget", 100*ClosedShare)
		return Step{}, false
	}
	return step, true
}

// saturation is the highest throughput of the closed loops.
func (s *Search) saturation() float64 {
	highest := 0.0
	for _, one := range s.closed {
		highest = max(highest, one.Throughput)
	}
	return highest
}

// saturated says whether more concurrency brought no more.
func (s *Search) saturated() bool {
	n := len(s.closed)
	return n > 1 && s.closed[n-1].Throughput < flatGain*s.closed[n-2].Throughput
}

// begin makes the posteriors, once the closed loops say where the answer can be.
func (s *Search) begin() {
	if s.known != nil || s.closedEnd == "" || s.saturation() == 0 {
		return
	}
	top := openCeiling * s.saturation()
	if s.saturated() || s.missed {
		top = ceiling * s.saturation()
	}
	for _, slo := range s.o.SLOs {
		s.known = append(s.known, newPosterior(floor*s.saturation(), top, Misses{Objective: slo}.Allowed()))
	}
}

// interval is the answer's: its median, and the bounds that hold it with the
// search's confidence.
func (s *Search) interval() (low, middle, high float64) {
	weights := lowest(s.known)
	at := func(q float64) float64 { return s.known[0].quantile(weights, q) }
	tail := (1 - s.o.Confidence) / 2
	return at(tail), at(0.5), at(1 - tail)
}

// nextOpen is the next trial, or why there is none.
func (s *Search) nextOpen() (step Step, ended string) {
	if s.begin(); s.known == nil {
		return Step{}, record.KneeNothing
	}
	low, rate, high := s.interval()
	why := fmt.Sprintf("the middle of what is likely, %.3g to %.3g req/s", low, high)
	switch {
	case len(s.tried) == 0:
		rate, why = s.firstRate()
	case high < nothingBelow*s.saturation():
		return Step{}, record.KneeNothing
	case high <= low*(1+s.o.Precision):
		return Step{}, record.KneeTight
	}
	warmup := max(s.o.WarmupSeconds, lives*s.latencyAt(rate))
	left := s.o.BudgetSeconds - s.spent - warmup - s.o.LagSeconds
	share := left / float64(max(trials-len(s.tried), 2))
	// A trial shorter than its warm-up tells little for its cost, and one of a few
	// requests nothing.
	window := max(share, 2*warmup, 20/rate)
	if window > left {
		return Step{}, record.KneeBudget
	}
	// Three digits are finer than any interval, and easier to read.
	digits := math.Pow(10, math.Floor(math.Log10(rate))-2)
	rate = math.Round(rate/digits) * digits
	return Step{Rate: rate, Warmup: warmup, Window: window, Why: why}, ""
}

// latencyAt is about the latency at a rate: that of the smallest closed loop
// which completes as much.
func (s *Search) latencyAt(rate float64) float64 {
	for _, one := range s.closed {
		if one.Throughput >= rate {
			return one.Latency
		}
	}
	return s.closed[len(s.closed)-1].Latency
}

// firstRate is below the throughput of the busiest closed loop that held: what
// comes unevenly needs some room.
func (s *Search) firstRate() (rate float64, why string) {
	for i := len(s.closed) - 1; i >= 0; i-- {
		one := s.closed[i]
		if verdict, _, _ := Judge(one.Misses, s.o.Confidence, true); verdict == record.KneeHolds {
			return 0.85 * one.Throughput, fmt.Sprintf("85 %% of the %.3g req/s of %d in flight", one.Throughput, one.Concurrency)
		}
	}
	return math.Max(0.5*s.closed[0].Throughput, 2*floor*s.saturation()), "an objective is missed by one request alone; half its rate"
}
