package stats

import (
	"math"
	"slices"
)

// MaxExact is the number of samples up to which a Sample is exact.
const MaxExact = 1_000_000

// finePrecision is the relative precision of a Sample beyond MaxExact: three
// significant digits.
const finePrecision = 0.0005

// Sample collects numbers of 0 and above. Its quantiles are exact up to MaxExact
// numbers and within 0.05 % beyond. The zero value is empty.
type Sample struct {
	values    []float64 // in the order in which they came
	ranked    []float64 // sorted; nil until somebody asks
	overflow  map[int]int64
	zero      int64
	n         int
	sum       float64
	low, high float64
}

// Add adds one number.
func (s *Sample) Add(value float64) { s.AddWeighted(value, 1) }

// AddWeighted adds a number that stands for several equal ones.
func (s *Sample) AddWeighted(value float64, weight int) {
	if weight < 1 {
		return
	}
	if s.n == 0 {
		s.low, s.high = value, value
	}
	s.low, s.high = min(s.low, value), max(s.high, value)
	s.n += weight
	s.sum += value * float64(weight)
	s.ranked = nil
	if s.overflow == nil && s.n <= MaxExact {
		for range weight {
			s.values = append(s.values, value)
		}
		return
	}
	if s.overflow == nil {
		s.overflow = make(map[int]int64)
		for _, earlier := range s.values {
			s.count(earlier, 1)
		}
		s.values = nil
	}
	s.count(value, int64(weight))
}

func (s *Sample) count(value float64, weight int64) {
	if value <= 0 {
		s.zero += weight
		return
	}
	fine := Histogram{Precision: finePrecision}
	s.overflow[fine.index(value)] += weight
}

// Count is how many numbers there are.
func (s *Sample) Count() int { return s.n }

// Mean, Min and Max describe the numbers; they are exact always, and 0 without
// any.
func (s *Sample) Mean() float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n)
}

func (s *Sample) Min() float64 { return s.low }
func (s *Sample) Max() float64 { return s.high }

// AtRank returns the number of a rank, counted from 1 in ascending order.
func (s *Sample) AtRank(rank int) float64 {
	if s.overflow == nil {
		if s.ranked == nil {
			s.ranked = slices.Clone(s.values)
			slices.Sort(s.ranked)
		}
		return s.ranked[rank-1]
	}
	fine := s.fine()
	value, _ := fine.Quantile(float64(rank) / float64(s.n))
	return min(max(value, s.low), s.high)
}

// Quantile returns the nearest-rank quantile, 0 < q <= 1. There must be numbers.
func (s *Sample) Quantile(q float64) float64 { return s.AtRank(Rank(s.n, q)) }

// maxSeries bounds the numbers that the search for dependence looks at.
const maxSeries = 100_000

// QuantileInterval returns the ranks of the two numbers that hold the true
// quantile q between them with the given confidence, where numbers that follow
// one another may depend on each other (SeriesQuantileInterval). Beyond MaxExact
// the order is lost and they are taken as independent.
func (s *Sample) QuantileInterval(q, confidence float64) (low, high int) {
	if s.overflow != nil || s.n == 0 {
		return QuantileInterval(s.n, q, confidence)
	}
	at := s.Quantile(q)
	if s.n <= maxSeries {
		return SeriesQuantileInterval(s.values, q, at, confidence)
	}
	// Every k-th tells a little less than all.
	every := (s.n + maxSeries - 1) / maxSeries
	thin := make([]float64, 0, maxSeries)
	for i := 0; i < len(s.values); i += every {
		thin = append(thin, s.values[i])
	}
	low, high = SeriesQuantileInterval(thin, q, at, confidence)
	return min(low*every, s.n), min(high*every, s.n)
}

func (s *Sample) fine() *Histogram {
	fine := &Histogram{Precision: finePrecision, Zero: s.zero}
	fine.fill(s.overflow)
	return fine
}

// Histogram returns the numbers as a histogram of DefaultPrecision.
func (s *Sample) Histogram() *Histogram {
	if s.overflow == nil {
		return NewHistogram(s.values)
	}
	fine := s.fine()
	coarse := NewHistogram(nil)
	coarse.Zero = s.zero
	buckets := make(map[int]int64)
	g := fine.growth()
	for i, index := range fine.Indexes {
		buckets[coarse.index(2*math.Pow(g, float64(index))/(g+1))] += fine.Counts[i]
	}
	coarse.fill(buckets)
	return coarse
}
