package hpa

import (
	"math"
	"strconv"
)

// Range is a replica count of which only bounds are known, both included.
type Range struct {
	Low, High int32
}

// Exactly is the Range that holds one value.
func Exactly(n int32) Range { return Range{n, n} }

// AnyCount is the Range of a count about which nothing is known.
func AnyCount() Range { return Range{0, math.MaxInt32} }

// Exact says whether the count is known.
func (r Range) Exact() bool { return r.Low == r.High }

// Contains says whether n is possible.
func (r Range) Contains(n int32) bool { return r.Low <= n && n <= r.High }

// Intersect returns what both allow; ok is false where that is nothing.
func (r Range) Intersect(other Range) (both Range, ok bool) {
	both = Range{max(r.Low, other.Low), min(r.High, other.High)}
	return both, both.Low <= both.High
}

// or is the smallest Range with both; one whose Low is above its High is empty.
func (r Range) or(other Range) Range {
	return Range{min(r.Low, other.Low), max(r.High, other.High)}
}

// span is the smallest Range with all of counts.
func span(counts ...int32) Range {
	r := Range{math.MaxInt32, math.MinInt32}
	for _, n := range counts {
		r.Low, r.High = min(r.Low, n), max(r.High, n)
	}
	return r
}

// plus moves both ends, without overflow.
func (r Range) plus(other Range) Range {
	return Range{clamp(int64(r.Low) + int64(other.Low)), clamp(int64(r.High) + int64(other.High))}
}

// minus subtracts a count that is itself a Range.
func (r Range) minus(other Range) Range {
	return Range{clamp(int64(r.Low) - int64(other.High)), clamp(int64(r.High) - int64(other.Low))}
}

func clamp(n int64) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// String is the count, or its bounds: "3", "2 to 5", "at least 2".
func (r Range) String() string {
	switch {
	case r.Exact():
		return strconv.Itoa(int(r.Low))
	case r.High == math.MaxInt32 && r.Low <= 0:
		return "unknown"
	case r.High == math.MaxInt32:
		return "at least " + strconv.Itoa(int(r.Low))
	}
	return strconv.Itoa(int(r.Low)) + " to " + strconv.Itoa(int(r.High))
}
