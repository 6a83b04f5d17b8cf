package capacity

import (
	"errors"
	"math"
	"slices"
)

// Point is one operating point of one replica.
type Point struct {
	// N is the number of requests in flight.
	N float64
	// X is the completed requests per second.
	X float64
}

// USL is Gunther's universal scalability law,
//
//	X(N) = Lambda*N / (1 + Sigma*(N-1) + Kappa*N*(N-1)).
//
// Lambda is the throughput of a single request stream in requests per second,
// Sigma the contention (what is done one after another) and Kappa the
// coherence cost (what grows with every pair), both without unit.
type USL struct {
	Lambda, Sigma, Kappa float64
}

// At returns the throughput at n requests in flight.
func (u USL) At(n float64) float64 {
	return u.Lambda * n / (1 + u.Sigma*(n-1) + u.Kappa*n*(n-1))
}

// Peak returns where the curve is highest, sqrt((1-Sigma)/Kappa). Without a
// coherence cost the curve only approaches its ceiling and Peak is +Inf.
func (u USL) Peak() float64 {
	switch {
	case u.Sigma >= 1:
		return 1
	case u.Kappa <= 0:
		return math.Inf(1)
	}
	return math.Sqrt((1 - u.Sigma) / u.Kappa)
}

// Ceiling returns the throughput at the peak or, where there is none, the
// asymptote Lambda/Sigma; +Inf for a curve that is a straight line.
func (u USL) Ceiling() float64 {
	if peak := u.Peak(); !math.IsInf(peak, 1) {
		return u.At(peak)
	}
	if u.Sigma <= 0 {
		return math.Inf(1)
	}
	return u.Lambda / u.Sigma
}

// Fit is a USL fitted to points.
type Fit struct {
	USL
	// Free is the number of parameters that the data decided; those on the
	// edge of what is physical (Sigma or Kappa of 0) are not counted.
	Free int
	// R2 is the share of the variance explained, NaN where the throughputs do
	// not vary.
	R2 float64
	// Residuals are measured minus fitted, in the order of the points.
	Residuals []float64
}

// MinPoints is the number of different loads a fit needs: one more than the
// law has parameters, so that the fit can be wrong.
const MinPoints = 4

// ErrFewPoints says that a fit was asked of fewer than MinPoints loads.
var ErrFewPoints = errors.New("fewer than 4 different loads")

// ErrNoFit says that no curve with physical parameters describes the points.
var ErrNoFit = errors.New("no curve with positive throughput fits the points")

// FitUSL fits the law by least squares on throughput. The start is the linear
// form N/X = a + b(N-1) + cN(N-1) with a = 1/Lambda, b = Sigma/Lambda and
// c = Kappa/Lambda (Gunther, Guerrilla Capacity Planning, chapter 5), whose
// errors are not those of the measurement; the refinement weighs each
// throughput as the count that it is. Negative parameters mean nothing, so
// where the free fit has one, the best fit with that parameter at 0 is taken.
func FitUSL(points []Point) (Fit, error) {
	if len(Loads(points)) < MinPoints {
		return Fit{}, ErrFewPoints
	}
	return fit(points)
}

// terms are the parameter sets tried in turn: all three, and the edges.
var terms = [4][3]bool{{true, true, true}, {true, true, false}, {true, false, true}, {true, false, false}}

func fit(points []Point) (Fit, error) {
	best, bestError := Fit{}, math.Inf(1)
	for _, free := range terms {
		p, ok := refine(points, free)
		if !ok || p[0] <= 0 || p[1] < 0 || p[2] < 0 {
			continue
		}
		if sse := squaredError(points, p); sse < bestError {
			best = Fit{USL: USL{Lambda: 1 / p[0], Sigma: p[1] / p[0], Kappa: p[2] / p[0]}}
			best.Free = count(free)
			bestError = sse
		}
		if count(free) == len(p) {
			break // the free optimum is physical: no edge can be better
		}
	}
	if math.IsInf(bestError, 1) {
		return Fit{}, ErrNoFit
	}
	mean := 0.0
	for _, point := range points {
		best.Residuals = append(best.Residuals, point.X-best.At(point.N))
		mean += point.X / float64(len(points))
	}
	total, unexplained := 0.0, 0.0
	for i, point := range points {
		total += (point.X - mean) * (point.X - mean)
		unexplained += best.Residuals[i] * best.Residuals[i]
	}
	best.R2 = math.NaN()
	if total > 0 {
		best.R2 = 1 - unexplained/total
	}
	return best, nil
}

// LeaveOneOut refits without each load in turn and predicts it. It returns the
// mean and the largest relative error of those predictions; ok is false where
// too few loads remain.
func LeaveOneOut(points []Point) (mean, worst float64, ok bool) {
	loads := Loads(points)
	if len(loads) < MinPoints {
		return 0, 0, false
	}
	held := 0
	for _, load := range loads {
		rest := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return p.N == load })
		partial, err := fit(rest)
		if err != nil {
			return 0, 0, false
		}
		for _, point := range points {
			if point.N == load {
				miss := math.Abs(partial.At(load)-point.X) / point.X
				mean += miss
				worst = max(worst, miss)
				held++
			}
		}
	}
	return mean / float64(held), worst, true
}

// Loads returns the different loads among the points, in rising order.
func Loads(points []Point) []float64 {
	loads := make([]float64, 0, len(points))
	for _, point := range points {
		loads = append(loads, point.N)
	}
	slices.Sort(loads)
	return slices.Compact(loads)
}

func count(free [3]bool) (n int) {
	for _, is := range free {
		if is {
			n++
		}
	}
	return n
}
