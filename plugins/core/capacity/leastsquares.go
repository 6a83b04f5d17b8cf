package capacity

import "math"

// The fit works on p = (a, b, c) with X = N/D and D = a + b(N-1) + cN(N-1):
// in these the linear start is exact and "physical" is a sign.
type coefficients [3]float64

const (
	maxSteps      = 200
	convergedGain = 1e-14
	firstDamping  = 1e-3
	maxDamping    = 1e12
)

func basis(n float64) coefficients { return coefficients{1, n - 1, n * (n - 1)} }

func denominator(n float64, p coefficients) float64 {
	b := basis(n)
	return p[0]*b[0] + p[1]*b[1] + p[2]*b[2]
}

// squaredError is the sum of squared throughput errors, each divided by the
// throughput measured there: a rate is a count over a window, and a count's
// variance grows with it. It is +Inf where the curve has a pole or is negative
// at a measured load.
func squaredError(points []Point, p coefficients) float64 {
	sum := 0.0
	for _, point := range points {
		d := denominator(point.N, p)
		if d <= 0 {
			return math.Inf(1)
		}
		miss := point.X - point.N/d
		sum += miss * miss / point.X
	}
	return sum
}

// refine runs Levenberg and Marquardt's iteration from the linear start, over
// the free coefficients only.
func refine(points []Point, free [3]bool) (coefficients, bool) {
	p, ok := linear(points, free)
	if !ok {
		return p, false
	}
	sse := squaredError(points, p)
	if math.IsInf(sse, 1) {
		return p, false
	}
	damping := firstDamping
	for range maxSteps {
		next, ok := step(points, p, free, damping)
		nextError := math.Inf(1)
		if ok {
			nextError = squaredError(points, next)
		}
		if nextError >= sse {
			if damping *= 10; damping > maxDamping {
				break
			}
			continue
		}
		done := sse-nextError <= convergedGain*sse
		p, sse, damping = next, nextError, max(damping/10, 1e-12)
		if done {
			break
		}
	}
	return p, true
}

// linear solves N/X = a + b(N-1) + cN(N-1).
func linear(points []Point, free [3]bool) (coefficients, bool) {
	var normal [3][3]float64
	var right coefficients
	for _, point := range points {
		if point.X <= 0 {
			return right, false
		}
		accumulate(&normal, &right, basis(point.N), point.N/point.X)
	}
	return solve(normal, right, free)
}

func step(points []Point, p coefficients, free [3]bool, damping float64) (coefficients, bool) {
	var normal [3][3]float64
	var right coefficients
	for _, point := range points {
		d := denominator(point.N, p)
		weight := 1 / math.Sqrt(point.X)
		slope := basis(point.N)
		for i := range slope {
			slope[i] *= -weight * point.N / (d * d)
		}
		accumulate(&normal, &right, slope, weight*(point.X-point.N/d))
	}
	for i := range normal {
		normal[i][i] *= 1 + damping
	}
	delta, ok := solve(normal, right, free)
	for i := range p {
		p[i] += delta[i]
	}
	return p, ok
}

func accumulate(normal *[3][3]float64, right *coefficients, row coefficients, value float64) {
	for i := range row {
		for j := range row {
			normal[i][j] += row[i] * row[j]
		}
		right[i] += row[i] * value
	}
}

// solve solves the normal equations over the free coefficients by elimination
// with pivoting, after scaling the columns to length one: N(N-1) is thousands
// of times the constant column. Coefficients that are not free are 0.
func solve(normal [3][3]float64, right coefficients, free [3]bool) (coefficients, bool) {
	var scale coefficients
	for i := range scale {
		if scale[i] = 1; free[i] && normal[i][i] > 0 {
			scale[i] = 1 / math.Sqrt(normal[i][i])
		}
	}
	for i := range normal {
		for j := range normal {
			if !free[i] || !free[j] {
				normal[i][j] = 0
				continue
			}
			normal[i][j] *= scale[i] * scale[j]
		}
		if !free[i] {
			normal[i][i], right[i] = 1, 0
		}
		right[i] *= scale[i]
	}
	for i := range normal {
		pivot := i
		for k := i + 1; k < 3; k++ {
			if math.Abs(normal[k][i]) > math.Abs(normal[pivot][i]) {
				pivot = k
			}
		}
		normal[i], normal[pivot] = normal[pivot], normal[i]
		right[i], right[pivot] = right[pivot], right[i]
		if math.Abs(normal[i][i]) < 1e-13 {
			return coefficients{}, false
		}
		for k := i + 1; k < 3; k++ {
			factor := normal[k][i] / normal[i][i]
			for j := i; j < 3; j++ {
				normal[k][j] -= factor * normal[i][j]
			}
			right[k] -= factor * right[i]
		}
	}
	for i := 2; i >= 0; i-- {
		for j := i + 1; j < 3; j++ {
			right[i] -= normal[i][j] * right[j]
		}
		right[i] /= normal[i][i]
	}
	for i := range right {
		right[i] *= scale[i]
	}
	return right, true
}
