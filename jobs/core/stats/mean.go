package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

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
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(1 - (1-confidence)/2)
	half := t * math.Sqrt(squares/(n-1)/n)
	return mean, mean - half, mean + half, true
}
