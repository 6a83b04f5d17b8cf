package stats

import "math"

// MeanInterval returns the mean of values and its two-sided confidence interval
// by Student's t. The values should be independent, such as the rates of long
// parts of a window (the method of batch means). ok is false for fewer than two.
func MeanInterval(values []float64, confidence float64) (mean, low, high float64, ok bool) {
	n := float64(len(values))
	if len(values) == 0 {
		return 0, 0, 0, false
	}
	for _, value := range values {
		mean += value / n
	}
	if len(values) < 2 {
		return mean, mean, mean, false
	}
	squares := 0.0
	for _, value := range values {
		squares += (value - mean) * (value - mean)
	}
	half := StudentT(len(values)-1, confidence) * math.Sqrt(squares/(n-1)/n)
	return mean, mean - half, mean + half, true
}

// StudentT returns the t with which [-t, t] holds the given share, 0 < share < 1,
// of Student's distribution with the degrees of freedom.
func StudentT(degrees int, share float64) float64 {
	low, high := 0.0, 1.0
	for studentWithin(degrees, high) < share && high < 1e15 {
		low, high = high, 2*high
	}
	for range 200 {
		middle := (low + high) / 2
		if middle == low || middle == high {
			break
		}
		if studentWithin(degrees, middle) < share {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// studentWithin is the share of Student's distribution in [-t, t]: the finite
// series of Abramowitz and Stegun, 26.7.3 and 26.7.4.
func studentWithin(degrees int, t float64) float64 {
	nu := float64(degrees)
	theta := math.Atan(t / math.Sqrt(nu))
	sin, cos2 := math.Sin(theta), nu/(nu+t*t)
	if degrees%2 == 0 {
		term, sum := 1.0, 1.0
		for k := 2; k < degrees; k += 2 {
			term *= float64(k-1) / float64(k) * cos2
			sum += term
		}
		return sin * sum
	}
	if degrees == 1 {
		return 2 * theta / math.Pi
	}
	cos := math.Sqrt(cos2)
	term, sum := cos, cos
	for k := 3; k < degrees; k += 2 {
		term *= float64(k-1) / float64(k) * cos2
		sum += term
	}
	return 2 / math.Pi * (theta + sin*sum)
}
