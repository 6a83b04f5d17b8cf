package stats

import "math"

// maxLag bounds the lags that DesignEffect looks at.
const maxLag = 2000

// DesignEffect says how many samples of a series, in the order in which they
// came, are worth one independent sample: 1 + 2 (rho_1 + rho_2 + ...), at least
// 1, with the sum cut where the sum of two neighbouring autocorrelations is no
// longer positive (the initial positive sequence of Geyer 1992). Latencies that
// follow one another share a queue, so that n of them tell less than n would.
func DesignEffect(series []float64) float64 {
	n := len(series)
	if n < 4 {
		return 1
	}
	mean := 0.0
	for _, value := range series {
		mean += value / float64(n)
	}
	covariance := func(lag int) float64 {
		sum := 0.0
		for i := lag; i < n; i++ {
			sum += (series[i] - mean) * (series[i-lag] - mean)
		}
		return sum / float64(n)
	}
	variance := covariance(0)
	// What is left of equal values is rounding.
	if variance <= 1e-20*mean*mean {
		return 1
	}
	sum := variance + covariance(1)
	for lag := 2; lag+1 < min(n/2, maxLag); lag += 2 {
		pair := covariance(lag) + covariance(lag+1)
		if pair <= 0 {
			break
		}
		sum += pair
	}
	return max(2*sum/variance-1, 1)
}

// SeriesMeanInterval is the interval of the mean of a series whose neighbours
// may depend on one another. ok is false where it is worth fewer than ten
// independent samples: then no interval can be trusted.
func SeriesMeanInterval(series []float64, confidence float64) (mean, low, high float64, ok bool) {
	mean, _, high, ok = MeanInterval(series, confidence)
	worth := float64(len(series)) / DesignEffect(series)
	if !ok || worth < leastWorth {
		return mean, mean, mean, false
	}
	// MeanInterval's half width has sqrt(n) and n-1 degrees of freedom in it.
	half := (high - mean) * math.Sqrt(float64(len(series))/worth)
	half *= StudentT(max(int(worth)-1, 1), confidence) / StudentT(len(series)-1, confidence)
	return mean, mean - half, mean + half, true
}

// leastWorth is the least number of independent samples of an interval.
const leastWorth = 10

// SeriesQuantileInterval returns the ranks, counted from 1, of the order
// statistics that hold the quantile q of such a series, as QuantileInterval does
// of independent samples. at is the sample's own quantile. A rank is 0 where the
// samples cannot bound that side.
func SeriesQuantileInterval(series []float64, q, at, confidence float64) (low, high int) {
	n := len(series)
	above := make([]float64, n)
	for i, value := range series {
		if value > at {
			above[i] = 1
		}
	}
	effect := DesignEffect(above)
	worth := int(float64(n) / effect)
	if worth >= n {
		return QuantileInterval(n, q, confidence)
	}
	if worth < leastWorth {
		return 0, 0
	}
	// The ranks of the smaller sample, as shares, on the larger one.
	low, high = QuantileInterval(worth, q, confidence)
	scale := float64(n) / float64(worth)
	if low > 0 {
		low = max(int(math.Floor(float64(low)*scale)), 1)
	}
	if high > 0 {
		high = min(int(math.Ceil(float64(high)*scale)), n)
	}
	return low, high
}
