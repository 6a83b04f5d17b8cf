package stats

import (
	"math"
	"slices"
)

// Drift says what the number of requests in a system does over a window.
type Drift string

const (
	// DriftStable: it goes up and down about a level.
	DriftStable Drift = "stable"
	// DriftAtCapacity: it wanders as a queue does whose server is just as fast as
	// its arrivals, so that its next hour is not like its last.
	DriftAtCapacity Drift = "at_capacity"
	// DriftOver: it grows, and more than chance explains.
	DriftOver Drift = "over"
	// DriftUnknown: the window holds too few arrivals to tell.
	DriftUnknown Drift = "unknown"
)

// DriftParts is the number of equal parts of a window that DriftOf reads.
const DriftParts = 16

const (
	// driftLeast arrivals are needed: below, a stable queue's ups and downs are as
	// large as those of one at capacity.
	driftLeast = 100
	// overScore and capacityScore are in standard deviations of the critical
	// queue. Of simulated M/M/1 queues at exactly capacity, 1 in 20 passes the
	// first; of those at 0.9 of it, with 8,000 arrivals, fewer pass the second.
	overScore     = 1.5
	capacityScore = 0.55
)

// DriftOf judges an open loop's backlog: parts are the mean numbers in the system
// in DriftParts equal parts of the window, peak the largest number in it,
// arrivals the number of requests that came in it.
//
// A line fit does not do: at exactly capacity the backlog grows with the square
// root of time, as a reflected random walk, and a line through it looks level
// (inference-sim#1614). So growth, the last quarter less the first, and the span
// from the lowest part to the peak are held against the standard deviation of that walk, sqrt(2 arrivals), the 2 being
// Poisson arrivals and exponential service; both are steadier in practice, which
// errs on the side of calling a system stable.
func DriftOf(parts []float64, peak float64, arrivals int) (verdict Drift, score float64) {
	if len(parts) != DriftParts || arrivals < 1 {
		return DriftUnknown, 0
	}
	const quarter = DriftParts / 4
	early, late := 0.0, 0.0
	for i := range quarter {
		early += parts[i] / quarter
		late += parts[DriftParts-quarter+i] / quarter
	}
	deviation := math.Sqrt(2 * float64(arrivals))
	score = (late - early) / deviation
	switch {
	case score > overScore:
		return DriftOver, score
	case arrivals < driftLeast:
		return DriftUnknown, score
	case (peak-slices.Min(parts))/deviation > capacityScore:
		return DriftAtCapacity, score
	}
	return DriftStable, score
}
