package stats

import "math"

// Rank is the nearest rank of quantile q, 0 < q <= 1, among n sorted samples,
// counted from 1: the smallest k with k >= q n.
func Rank(n int, q float64) int {
	// q n is a product of rounded numbers: 0.95 x 100 may be above 95.
	exact := q * float64(n)
	if near := math.Round(exact); math.Abs(exact-near) < 1e-9*max(1, exact) {
		exact = near
	}
	return min(max(int(math.Ceil(exact)), 1), n)
}

// Percentile returns the nearest-rank quantile of sorted samples: the smallest
// sample with at least q n samples at or below it. sorted must not be empty.
func Percentile(sorted []float64, q float64) float64 { return sorted[Rank(len(sorted), q)-1] }

// QuantileInterval returns the ranks, counted from 1, of the two order
// statistics that hold the true quantile q between them with at least the given
// confidence, whatever the distribution: the number of samples at or below it
// is binomial (n, q). Each side gets half of the risk. A rank is 0 where n
// samples cannot bound that side.
func QuantileInterval(n int, q, confidence float64) (low, high int) {
	tail := (1 - confidence) / 2
	// low is the largest k with P(Bin <= k-1) <= tail; high is the smallest k
	// with P(Bin >= k) <= tail.
	below := 0.0
	for k := 0; k <= n; k++ {
		p := binomial(n, k, q)
		if below+p <= tail {
			low = k + 1
		}
		below += p
		if high == 0 && k+1 <= n && 1-below <= tail {
			high = k + 1
		}
	}
	return min(low, n), high
}

func binomial(n, k int, p float64) float64 {
	all, _ := math.Lgamma(float64(n) + 1)
	chosen, _ := math.Lgamma(float64(k) + 1)
	rest, _ := math.Lgamma(float64(n-k) + 1)
	return math.Exp(all - chosen - rest + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}
