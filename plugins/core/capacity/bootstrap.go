package capacity

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// Level is the confidence of every interval.
const Level = 0.95

// normal is the quantile of the normal distribution that belongs to Level.
const normal = 1.959964

// Span is an interval by percentiles of resampled values. Low is -Inf or High
// +Inf where the resamples do not bound that side.
type Span struct{ Low, High float64 }

// Band is what the scatter of the residuals says about a fit.
type Band struct {
	Lambda, Sigma, Kappa Span
	// Peak and Ceiling are the curve's highest point.
	Peak, Ceiling Span
	// Kneedle is the knee of KneedleKnee at the measured loads.
	Kneedle Span
	// Curve holds the throughput at each load that was asked for.
	Curve []Span
}

// Resample draws a band by residual bootstrap (Efron and Tibshirani 1993,
// chapter 9): resampled residuals are added to the fitted curve and the law is
// fitted again. The fit weighs a throughput as a count, so residuals are
// exchanged in units of the square root of the throughput. They are widened by
// sqrt(n/(n-p)) for the p parameters already spent on them, and by t/z, since
// so few residuals understate their own scatter. ok is false where the fit has
// no residual freedom. The spans are at Level.
func (f Fit) Resample(points []Point, loads []float64, resamples int, random *rand.Rand) (Band, bool) {
	n := len(points)
	if n <= f.Free || resamples < 2 {
		return Band{}, false
	}
	widen := math.Sqrt(float64(n)/float64(n-f.Free)) * stats.StudentT(n-f.Free, Level) / normal
	standard := make([]float64, n)
	for i, point := range points {
		standard[i] = widen * f.Residuals[i] / math.Sqrt(point.X)
	}
	var lambda, sigma, kappa, peak, ceiling, knee []float64
	curve := make([][]float64, len(loads))
	redrawn := make([]Point, n)
	for range resamples {
		for i, point := range points {
			fitted := f.At(point.N)
			noise := standard[random.IntN(n)] * math.Sqrt(fitted)
			redrawn[i] = Point{N: point.N, X: max(fitted+noise, fitted*1e-3)}
		}
		again, err := fit(redrawn)
		if err != nil {
			continue
		}
		lambda, sigma, kappa = append(lambda, again.Lambda), append(sigma, again.Sigma), append(kappa, again.Kappa)
		peak, ceiling = append(peak, again.Peak()), append(ceiling, again.Ceiling())
		if at, ok := KneedleKnee(Average(redrawn)); ok {
			knee = append(knee, at)
		}
		for i, load := range loads {
			curve[i] = append(curve[i], again.At(load))
		}
	}
	if len(lambda) < resamples/2 {
		return Band{}, false
	}
	band := Band{
		Lambda: span(lambda), Sigma: span(sigma), Kappa: span(kappa),
		Peak: span(peak), Ceiling: span(ceiling), Kneedle: span(knee),
	}
	for _, values := range curve {
		band.Curve = append(band.Curve, span(values))
	}
	return band, true
}

// Average joins points of one load into their mean, in rising order of load.
func Average(points []Point) []Point {
	var joined []Point
	for _, load := range Loads(points) {
		sum, n := 0.0, 0
		for _, point := range points {
			if point.N == load {
				sum += point.X
				n++
			}
		}
		joined = append(joined, Point{N: load, X: sum / float64(n)})
	}
	return joined
}

func span(values []float64) Span {
	if len(values) == 0 {
		return Span{math.Inf(-1), math.Inf(1)}
	}
	slices.Sort(values)
	tail := (1 - Level) / 2
	at := func(q float64) float64 { return values[int(math.Round(q*float64(len(values)-1)))] }
	return Span{at(tail), at(1 - tail)}
}
