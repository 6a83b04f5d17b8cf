package capacity

import "math"

// marginalShare is the share of the first slope below which one more request
// in flight is no longer worth its latency.
const marginalShare = 0.1

// BoundsKnee is where the two operational bounds cross, N* = Xmax R(1): below
// it a request waits for nobody, above it somebody waits (Denning and Buzen
// 1978). By Little's law R(1) is N/X at the lowest load. The points must be in
// rising order; ok is false unless the first is a single request.
func BoundsKnee(points []Point) (n float64, ok bool) {
	if len(points) < 2 || points[0].N > 1 || points[0].X <= 0 {
		return 0, false
	}
	return best(points) * points[0].N / points[0].X, true
}

// PowerKnee is the measured load of highest power X/R, throughput over
// response time (Kleinrock 1979). By Little's law that is X^2/N.
func PowerKnee(points []Point) (n float64, ok bool) {
	if len(points) < 3 {
		return 0, false
	}
	power := math.Inf(-1)
	for _, point := range points {
		if p := point.X * point.X / point.N; p > power {
			n, power = point.N, p
		}
	}
	return n, true
}

// KneedleKnee is the measured load at which the curve, scaled to the unit
// square, is furthest above the diagonal (Satopaa and others 2011). ok is
// false where the curve is nowhere above it.
func KneedleKnee(points []Point) (n float64, ok bool) {
	if len(points) < 3 {
		return 0, false
	}
	first, last := points[0], points[len(points)-1]
	low, high := math.Inf(1), math.Inf(-1)
	for _, point := range points {
		low, high = min(low, point.X), max(high, point.X)
	}
	if high <= low || last.N <= first.N {
		return 0, false
	}
	above := 1e-9 // a straight line has no knee, rounding aside
	for _, point := range points {
		if d := (point.X-low)/(high-low) - (point.N-first.N)/(last.N-first.N); d > above {
			n, above, ok = point.N, d, true
		}
	}
	return n, ok
}

// Gains returns the throughput gained by one more request in flight between
// neighbouring points, len(points)-1 numbers.
func Gains(points []Point) []float64 {
	var gains []float64
	for i := 1; i < len(points); i++ {
		gains = append(gains, (points[i].X-points[i-1].X)/(points[i].N-points[i-1].N))
	}
	return gains
}

// MarginalKnee is the first load after which the gain falls below a tenth of
// the first gain. ok is false where that was not seen.
func MarginalKnee(points []Point) (n float64, ok bool) {
	gains := Gains(points)
	if len(gains) < 2 || gains[0] <= 0 {
		return 0, false
	}
	for i, gain := range gains {
		if gain < marginalShare*gains[0] {
			return points[i].N, true
		}
	}
	return 0, false
}

func best(points []Point) float64 {
	most := 0.0
	for _, point := range points {
		most = max(most, point.X)
	}
	return most
}
