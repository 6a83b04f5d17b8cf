package hpa

import "math"

// perReplica is the proposal for a total and a target per replica (External
// and Object metrics, target AverageValue). The divisor is status.replicas.
func (in Input) perReplica(total, target int64, status int32) (count int32, ratio float64) {
	ratio = float64(total) / (float64(target) * float64(status))
	if in.tolerances().within(ratio) {
		return status, ratio
	}
	return sizeOf(math.Ceil(float64(total) / float64(target))), ratio
}

// whole is the proposal for a total and a target of the total (External and
// Object metrics, target Value). The multiplier is the number of Ready pods.
func (in Input) whole(total, target int64, ready int32) (count int32, ratio float64) {
	ratio = float64(total) / float64(target)
	switch {
	case in.Replicas.Spec == 0:
		return sizeOf(math.Ceil(ratio)), ratio
	case in.tolerances().within(ratio):
		return in.Replicas.Spec, ratio
	}
	return sizeOf(math.Ceil(ratio * float64(ready))), ratio
}

// sizeOf converts a size. Beyond the range of an int32 it saturates, as the
// controller does since 1.35 (Object averages and sizes from zero: never). What
// the plain conversion gave there depends on the machine; no workload has
// such a size.
func sizeOf(n float64) int32 {
	if math.IsNaN(n) {
		return 0
	}
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}

// totalsOf returns the bounds of the total behind an average that the status
// shows, for a number of replicas: averages are rounded up.
func totalsOf(average int64, status int32) (low, high int64) {
	if average > math.MaxInt64/int64(status) {
		return math.MaxInt64, math.MaxInt64
	}
	high = average * int64(status)
	return high - int64(status) + 1, high
}

// summed is a total as the controller has summed it: since 1.34 it takes a
// negative sum of an external metric for an overflow if the target is an
// average, and goes on with the largest number there is.
func (in Input) summed(metric Metric, total int64) int64 {
	if total < 0 && metric.Type == External && metric.Target == AverageValue && in.Version.since(34) {
		return math.MaxInt64
	}
	return total
}
