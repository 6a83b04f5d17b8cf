package stats

import "math"

// ShareBounds are the one-sided bounds of a share of which k of n were seen
// (Clopper and Pearson 1934): with the given confidence the true share is at
// least low, and with the same confidence it is at most high.
func ShareBounds(k, n int, confidence float64) (low, high float64) {
	if n < 1 {
		return 0, 1
	}
	risk := 1 - confidence
	low, high = 0, 1
	if k > 0 {
		// low is where seeing k or more is as rare as the risk.
		low = bisect(func(p float64) bool { return 1-atMost(k-1, n, p) > risk })
	}
	if k < n {
		high = bisect(func(p float64) bool { return atMost(k, n, p) < risk })
	}
	return low, high
}

// bisect finds where, between 0 and 1, past becomes true.
func bisect(past func(float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if middle := (low + high) / 2; past(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return (low + high) / 2
}

// atMost is P(Bin(n, p) <= k).
func atMost(k, n int, p float64) float64 {
	if p <= 0 {
		return 1
	}
	if p >= 1 {
		if k >= n {
			return 1
		}
		return 0
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += binomial(n, i, p)
	}
	return math.Min(sum, 1)
}
