package knee

import (
	"cmp"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

const (
	firstLook = 20
	lookEvery = 1.25
	// missRatio stands for a request that failed: it took twice its limit.
	missRatio = 2
)

// Tally keeps what became of each objective, request by request.
type Tally struct {
	slos     []record.BenchSLO
	requests []outcome
	next     int // number of requests at which to look again
}

// outcome is a request that is over: when it was sent, how long it took, and for
// each objective its latency as a share of the limit.
type outcome struct {
	sent, life float64
	ratios     []float64
}

// NewTally is an empty tally.
func NewTally(slos []record.BenchSLO) *Tally { return &Tally{slos: slos, next: firstLook} }

// Add adds a request that is over: when it was sent and how long it took, in
// seconds. ratios are its latencies by objective, as shares of the limits; nil
// for a request that failed.
func (t *Tally) Add(sent, life float64, ratios []float64) {
	if ratios == nil {
		ratios = slices.Repeat([]float64{missRatio}, len(t.slos))
	}
	t.requests = append(t.requests, outcome{sent, life, ratios})
}

// Requests is how many were added.
func (t *Tally) Requests() int { return len(t.requests) }

// Look says whether it is time for another judgement. Each look may err, so they
// are few: one each time that the number of requests has grown by a quarter.
func (t *Tally) Look() bool {
	if len(t.requests) < t.next {
		return false
	}
	t.next = int(lookEvery*float64(len(t.requests))) + 1
	return true
}

// Misses sums up. The effect is that of the misses or, where there are too few
// of them to show one, that of the requests' whole time: a queue that has not
// filled yet makes nothing miss, and has its memory all the same.
func (t *Tally) Misses() []Misses {
	slices.SortStableFunc(t.requests, func(a, b outcome) int { return cmp.Compare(a.sent, b.sent) })
	all := make([]Misses, 0, len(t.slos))
	missed, lives := make([]float64, len(t.requests)), make([]float64, len(t.requests))
	for place, request := range t.requests {
		lives[place] = request.life
	}
	memory := stats.DesignEffect(lives)
	for i, slo := range t.slos {
		one := Misses{Objective: slo, Of: len(t.requests), Effect: 1}
		for place, request := range t.requests {
			if missed[place] = 0; request.ratios[i] > 1 {
				missed[place] = 1
				one.Missed++
			}
		}
		one.Effect = stats.DesignEffect(missed)
		if one.Missed < fewMisses {
			one.Effect = max(one.Effect, memory)
		}
		all = append(all, one)
	}
	return all
}

// fewMisses are too few to show how they hang together.
const fewMisses = 10
