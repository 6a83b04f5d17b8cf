package stats

import (
	"fmt"
	"math"
	"slices"
)

// DefaultPrecision is the relative precision of a histogram: a quantile read
// from it is within 1 % of the exact one.
const DefaultPrecision = 0.01

// Histogram counts positive samples in buckets that grow geometrically, so that
// every quantile has the same relative precision and two histograms of equal
// precision merge without loss (the construction of DDSketch, Masson, Rim and
// Lee 2019). Bucket i holds (g^(i-1), g^i] with g = (1+p)/(1-p); it is read as
// 2 g^i/(g+1), which is within p of each of its values.
type Histogram struct {
	// Precision is p.
	Precision float64 `json:"relative_precision"`
	// Zero counts the samples of 0 and below.
	Zero int64 `json:"zero"`
	// Indexes are the buckets that hold samples, in order; Counts their samples.
	Indexes []int   `json:"indexes"`
	Counts  []int64 `json:"counts"`
}

// NewHistogram makes a histogram of samples with DefaultPrecision.
func NewHistogram(samples []float64) *Histogram {
	h := &Histogram{Precision: DefaultPrecision, Indexes: []int{}, Counts: []int64{}}
	buckets := make(map[int]int64)
	for _, sample := range samples {
		if sample <= 0 {
			h.Zero++
			continue
		}
		buckets[h.index(sample)]++
	}
	h.fill(buckets)
	return h
}

func (h *Histogram) growth() float64 { return (1 + h.Precision) / (1 - h.Precision) }

func (h *Histogram) index(sample float64) int {
	return int(math.Ceil(math.Log(sample) / math.Log(h.growth())))
}

func (h *Histogram) fill(buckets map[int]int64) {
	h.Indexes, h.Counts = make([]int, 0, len(buckets)), make([]int64, 0, len(buckets))
	for index := range buckets {
		h.Indexes = append(h.Indexes, index)
	}
	slices.Sort(h.Indexes)
	for _, index := range h.Indexes {
		h.Counts = append(h.Counts, buckets[index])
	}
}

// Count is the number of samples.
func (h *Histogram) Count() int64 {
	total := h.Zero
	for _, count := range h.Counts {
		total += count
	}
	return total
}

// Merge returns the histogram of the samples of both. Histograms of different
// precision do not merge.
func (h *Histogram) Merge(other *Histogram) (*Histogram, error) {
	if h.Precision != other.Precision {
		return nil, fmt.Errorf("merge histograms: precision %v and %v differ", h.Precision, other.Precision)
	}
	buckets := make(map[int]int64, len(h.Indexes))
	for _, one := range []*Histogram{h, other} {
		if len(one.Indexes) != len(one.Counts) {
			return nil, fmt.Errorf("merge histograms: %d buckets and %d counts", len(one.Indexes), len(one.Counts))
		}
		for i, index := range one.Indexes {
			buckets[index] += one.Counts[i]
		}
	}
	merged := &Histogram{Precision: h.Precision, Zero: h.Zero + other.Zero}
	merged.fill(buckets)
	return merged, nil
}

// Quantile returns the nearest-rank quantile, 0 < q <= 1, within the precision.
// ok is false without samples.
func (h *Histogram) Quantile(q float64) (value float64, ok bool) {
	total := h.Count()
	if total == 0 || len(h.Indexes) != len(h.Counts) {
		return 0, false
	}
	rank := int64(Rank(int(total), q))
	seen := h.Zero
	if rank <= seen {
		return 0, true
	}
	for i, index := range h.Indexes {
		seen += h.Counts[i]
		if rank <= seen {
			g := h.growth()
			return 2 * math.Pow(g, float64(index)) / (g + 1), true
		}
	}
	return 0, false
}
