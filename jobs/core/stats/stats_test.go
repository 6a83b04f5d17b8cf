package stats_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

func oneTo(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i + 1)
	}
	return values
}

func TestPercentile(t *testing.T) {
	tests := map[string]struct {
		n    int
		q    float64
		want float64
	}{
		"p50 of 100 evalscope#1654": {100, 0.50, 50},
		"p90 of 100":                {100, 0.90, 90},
		"p95 of 100":                {100, 0.95, 95},
		"p99 of 100":                {100, 0.99, 99},
		"p100 perf-tests#422":       {100, 1, 100},
		"p99 of 6 is the largest":   {6, 0.99, 6},
		"p50 of 6":                  {6, 0.50, 3},
		"p50 of 5":                  {5, 0.50, 3},
		"one":                       {1, 0.5, 1},
		"p0.1 of 1000":              {1000, 0.001, 1},
		"p99 of 101":                {101, 0.99, 100},
		"p99.9 of 10000":            {10000, 0.999, 9990},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stats.Percentile(oneTo(test.n), test.q); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// The definition in words: the smallest sample with at least q n samples at or
// below it.
func TestPercentileByDefinition(t *testing.T) {
	for n := 1; n <= 300; n++ {
		for hundredths := 1; hundredths <= 100; hundredths++ {
			want := 1
			for want*100 < hundredths*n {
				want++
			}
			if got := stats.Rank(n, float64(hundredths)/100); got != want {
				t.Fatalf("n %d, p%d: rank %d, want %d", n, hundredths, got, want)
			}
		}
	}
}

func TestQuantileInterval(t *testing.T) {
	tests := map[string]struct {
		n         int
		q         float64
		low, high int
	}{
		// Tables of the binomial distribution give the classical intervals.
		"median of 10":           {10, 0.5, 2, 9},
		"median of 100":          {100, 0.5, 40, 61},
		"median of 5 is unbound": {5, 0.5, 0, 0},
		"p99 of 100 is unbound":  {100, 0.99, 97, 0},
		"p99 of 368 is bound":    {368, 0.99, 360, 368},
		"p99 of 367 is not":      {367, 0.99, 359, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			low, high := stats.QuantileInterval(test.n, test.q, 0.95)
			if low != test.low || high != test.high {
				t.Errorf("got %d, %d, want %d, %d", low, high, test.low, test.high)
			}
		})
	}
}

func TestQuantileIntervalCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct {
		n int
		q float64
	}{{500, 0.99}, {1000, 0.95}, {60, 0.5}} {
		t.Run(fmt.Sprintf("p%g of %d", 100*test.q, test.n), func(t *testing.T) {
			low, high := stats.QuantileInterval(test.n, test.q, 0.95)
			true99 := -math.Log(1 - test.q) // of the exponential distribution
			const rounds = 4000
			covered := 0
			sample := make([]float64, test.n)
			for range rounds {
				for i := range sample {
					sample[i] = random.ExpFloat64()
				}
				slices.Sort(sample)
				if sample[low-1] <= true99 && true99 <= sample[high-1] {
					covered++
				}
			}
			// Ranks are whole numbers, so the coverage is at least the level and not
			// exactly it.
			if share := float64(covered) / rounds; share < 0.94 || share > 0.99 {
				t.Errorf("covered %.3f", share)
			}
		})
	}
}

func TestMeanIntervalCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const rounds = 4000
	covered := 0
	values := make([]float64, 10)
	for range rounds {
		for i := range values {
			values[i] = 5 + random.NormFloat64()
		}
		if _, low, high, _ := stats.MeanInterval(values, 0.95); low <= 5 && 5 <= high {
			covered++
		}
	}
	if share := float64(covered) / rounds; math.Abs(share-0.95) > 0.02 {
		t.Errorf("covered %.3f", share)
	}
}

func TestMeanInterval(t *testing.T) {
	mean, low, high, ok := stats.MeanInterval([]float64{1, 2, 3, 4, 5}, 0.95)
	// t(0.975, 4) = 2.776, s = 1.5811, n = 5.
	if !ok || mean != 3 || math.Abs(high-3-1.9632) > 1e-3 || math.Abs(3-low-1.9632) > 1e-3 {
		t.Errorf("got %v [%v, %v] %v", mean, low, high, ok)
	}
	if mean, _, _, ok := stats.MeanInterval([]float64{7}, 0.95); ok || mean != 7 {
		t.Errorf("one value: got %v %v", mean, ok)
	}
	if _, _, _, ok := stats.MeanInterval(nil, 0.95); ok {
		t.Error("no value has an interval")
	}
}

// The values of the printed tables.
func TestStudentT(t *testing.T) {
	for _, test := range []struct {
		degrees int
		share   float64
		want    float64
	}{
		{1, 0.95, 12.7062}, {2, 0.95, 4.3027}, {3, 0.95, 3.1824}, {4, 0.95, 2.7764}, {9, 0.95, 2.2622}, {10, 0.95, 2.2281},
		{30, 0.95, 2.0423}, {120, 0.95, 1.9799}, {1, 0.5, 1}, {5, 0.99, 4.0321}, {1000, 0.95, 1.9623},
	} {
		if got := stats.StudentT(test.degrees, test.share); math.Abs(got-test.want) > 1e-4 {
			t.Errorf("%d degrees, %v: got %.4f, want %v", test.degrees, test.share, got, test.want)
		}
	}
}

func TestHistogramPrecision(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	parts := make([][]float64, 3)
	var all []float64
	for i := range parts {
		for range 2000 {
			value := math.Exp(random.NormFloat64()*3) / 1000
			parts[i] = append(parts[i], value)
			all = append(all, value)
		}
	}
	slices.Sort(all)
	merged := stats.NewHistogram(nil)
	for _, part := range parts {
		var err error
		if merged, err = merged.Merge(stats.NewHistogram(part)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(stats.NewHistogram(all), merged); diff != "" {
		t.Errorf("merge is not the histogram of all samples:\n%s", diff)
	}
	for _, q := range []float64{0.001, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
		want := stats.Percentile(all, q)
		got, ok := merged.Quantile(q)
		if !ok || math.Abs(got-want)/want > stats.DefaultPrecision*(1+1e-9) {
			t.Errorf("q %v: got %v, want %v", q, got, want)
		}
	}
}

func TestHistogramZero(t *testing.T) {
	h := stats.NewHistogram([]float64{0, 0, 0, 1})
	if median, ok := h.Quantile(0.5); !ok || median != 0 {
		t.Errorf("got %v %v", median, ok)
	}
	if h.Count() != 4 {
		t.Errorf("count %d", h.Count())
	}
	if _, ok := stats.NewHistogram(nil).Quantile(0.5); ok {
		t.Error("an empty histogram has a median")
	}
	if _, err := h.Merge(&stats.Histogram{Precision: 0.5}); err == nil {
		t.Error("histograms of different precision merged")
	}
	data, err := json.Marshal(stats.NewHistogram(nil))
	if err != nil || string(data) != `{"relative_precision":0.01,"zero":0,"indexes":[],"counts":[]}` {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestSample(t *testing.T) {
	var s stats.Sample
	for _, value := range []float64{3, 1, 2} {
		s.Add(value)
	}
	s.AddWeighted(10, 2)
	s.AddWeighted(99, 0)
	got := []float64{float64(s.Count()), s.Mean(), s.Min(), s.Max(), s.Quantile(0.5), s.AtRank(1)}
	if diff := cmp.Diff([]float64{5, 5.2, 1, 10, 3, 1}, got); diff != "" {
		t.Error(diff)
	}
}

// Beyond MaxExact a sample keeps three digits.
func TestSampleOverflow(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	var s stats.Sample
	all := make([]float64, 0, stats.MaxExact+1000)
	for range stats.MaxExact + 1000 {
		value := 0.02 * random.ExpFloat64()
		s.Add(value)
		all = append(all, value)
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.99, 1} {
		want := stats.Percentile(all, q)
		if got := s.Quantile(q); math.Abs(got-want)/want > 0.0006 {
			t.Errorf("q %v: got %v, want %v", q, got, want)
		}
		if got, _ := s.Histogram().Quantile(q); math.Abs(got-want)/want > 0.0116 {
			t.Errorf("histogram, q %v: got %v, want %v", q, got, want)
		}
	}
	if s.Histogram().Count() != int64(len(all)) {
		t.Errorf("histogram has %d", s.Histogram().Count())
	}
}
