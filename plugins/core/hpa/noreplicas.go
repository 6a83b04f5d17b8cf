package hpa

import "math"

// The controller divides a total by status.replicas, zero or not. What it then
// shows as the average of an External or Object metric says nothing of the
// total, and which number it is depends on the version and the machine: the
// smallest int64 on amd64 and the largest on arm64, where a total of 0 gives 0;
// since 1.38 always 0.
const (
	averageOfNone      = math.MinInt64
	averageOfNoneOnARM = math.MaxInt64
)

// isPerReplica says whether the controller divides the metric's total by
// status.replicas.
func (m Metric) isPerReplica() bool {
	return (m.Type == External || m.Type == Object) && m.Target == AverageValue
}

// averaged is the average that the status shows of such a metric, where nothing
// better is known.
func (m Metric) averaged() (average int64, ok bool) {
	if !m.isPerReplica() || m.Seen.State != Seen || m.Seen.Total != nil || m.Seen.Average == nil {
		return 0, false
	}
	return *m.Seen.Average, true
}

// statusProven narrows status.replicas by the averages that it divided: all
// metrics of a sync have the same divisor.
func (in Input) statusProven() Range {
	status := in.Replicas.Status
	for _, metric := range in.Metrics {
		switch average, ok := metric.averaged(); {
		case !ok, average == averageOfNoneOnARM, average == 0:
		case average == averageOfNone:
			return Exactly(0)
		default:
			status.Low = max(status.Low, 1)
		}
	}
	status.High = max(status.High, status.Low)
	return status
}

// ofNoReplicas says whether an average may stand for no replicas at all.
func (in Input) ofNoReplicas(metric Metric) bool {
	average, ok := metric.averaged()
	switch {
	case !ok:
		return false
	case average == averageOfNone:
		return true
	case average == averageOfNoneOnARM:
		return in.Replicas.Status.Low <= 0
	}
	return average == 0 && in.Replicas.Status.Low <= 0 && in.Version.since(38)
}
