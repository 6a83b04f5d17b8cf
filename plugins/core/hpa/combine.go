package hpa

import "math"

// Blocking says whether failed metrics stop all scaling in a sync.
type Blocking string

const (
	// NotBlocked: no metric failed, or the good ones ask for no less than now.
	NotBlocked Blocking = "none"
	// AllFailed: no metric could be read.
	AllFailed Blocking = "all_failed"
	// DownBlocked: some failed, and the good ones ask for less than now.
	DownBlocked Blocking = "down_blocked"
	// MaybeBlocked: some failed, and bounds do not tell whether the good ones
	// ask for less than now.
	MaybeBlocked Blocking = "maybe"
)

// NoWinner is the index of the winner where bounds leave it open, or where no
// metric was computed.
const NoWinner = -1

// combine takes the largest proposal: the raw size of the sync.
func combine(proposals []Proposal, spec int32) (raw Range, winner int, blocking Blocking) {
	failed, exact, negative := 0, true, false
	raw = Range{math.MinInt32, math.MinInt32}
	lowest := int32(math.MaxInt32)
	for _, p := range proposals {
		if p.Reason == MetricFailed {
			failed++
			continue
		}
		raw = Range{max(raw.Low, p.Count.Low), max(raw.High, p.Count.High)}
		lowest = min(lowest, p.Count.Low)
		exact, negative = exact && p.Count.Exact(), negative || p.Count.Low < 0
	}
	winner = NoWinner
	switch {
	case failed < len(proposals) && exact:
		raw, winner = takeOver(proposals)
	case negative:
		// Which of them counts depends on their order.
		raw.Low = lowest
	default:
		winner = winnerOf(proposals)
	}
	switch {
	case failed == len(proposals):
		return AnyCount(), NoWinner, AllFailed
	case failed > 0 && raw.High < spec:
		return raw, NoWinner, DownBlocked
	case failed > 0 && raw.Low < spec:
		return raw, winner, MaybeBlocked
	}
	return raw, winner, NotBlocked
}

// takeOver goes through exact proposals as the controller does: a later one
// takes over if it is larger, and from a zero always, a negative one too.
func takeOver(proposals []Proposal) (raw Range, winner int) {
	size := int32(0)
	winner = NoWinner
	for i, p := range proposals {
		if p.Reason != MetricFailed && (size == 0 || p.Count.Low > size) {
			size, winner = p.Count.Low, i
		}
	}
	return Exactly(size), winner
}

// winnerOf is the first metric with the largest proposal. Among proposals of
// zero it is the last one: the controller takes over from a zero always.
func winnerOf(proposals []Proposal) int {
	for i, p := range proposals {
		if p.Reason != MetricFailed && beats(proposals, i) {
			return i
		}
	}
	last := NoWinner
	for i, p := range proposals {
		switch {
		case p.Reason == MetricFailed:
		case p.Count != Exactly(0):
			return NoWinner
		default:
			last = i
		}
	}
	return last
}

func beats(proposals []Proposal, i int) bool {
	low := proposals[i].Count.Low
	if low <= 0 {
		return false
	}
	for j, other := range proposals {
		if j == i || other.Reason == MetricFailed {
			continue
		}
		if other.Count.High > low || (j < i && other.Count.High == low) {
			return false
		}
	}
	return true
}
