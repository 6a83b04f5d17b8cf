package keda

import (
	"math"
	"strconv"
)

// The behaviors of a fallback. An empty one is static.
const (
	FallbackStatic           = "static"
	FallbackCurrent          = "currentReplicas"
	FallbackCurrentIfHigher  = "currentReplicasIfHigher"
	FallbackCurrentIfLower   = "currentReplicasIfLower"
	FallbackScalingModifiers = "scalingModifiers"
)

// FallbackProblem says why a fallback that is written down does nothing.
type FallbackProblem string

// The problems of a fallback.
const (
	// FallbackFine: it works.
	FallbackFine FallbackProblem = ""
	// FallbackNegative: the failure threshold or the replicas are negative.
	FallbackNegative FallbackProblem = "negative"
	// FallbackTargetNoInteger: with scalingModifiers it works only if their
	// target is a whole number above 0; KEDA tells nobody but its log.
	FallbackTargetNoInteger FallbackProblem = "target_no_integer"
	// FallbackValueUnsupported: before 2.18 only AverageValue has a fallback.
	FallbackValueUnsupported FallbackProblem = "value_unsupported"
)

// FallbackProblem says whether the fallback works for a metric whose target is
// of a type. It is FallbackFine without a fallback too.
func (s ScaledObject) FallbackProblem(v Version, targetType string) FallbackProblem {
	fallback := s.Spec.Fallback
	if fallback == nil {
		return FallbackFine
	}
	if !v.since(18, 0) {
		if v.since(17, 0) && s.UsesModifiers() {
			targetType = s.Spec.Advanced.Modifiers.MetricType
		}
		if targetType != "" && targetType != TargetAverageValue {
			return FallbackValueUnsupported
		}
	}
	if s.UsesModifiers() {
		target, err := strconv.ParseInt(s.Spec.Advanced.Modifiers.Target, 10, 64)
		if err != nil || target <= 0 {
			return FallbackTargetNoInteger
		}
	}
	if fallback.FailureThreshold < 0 || fallback.Replicas < 0 {
		return FallbackNegative
	}
	return FallbackFine
}

// FallbackReplicas is the size that the fallback asks for at the current size.
// The behaviors but static are known since 2.17.
func (s ScaledObject) FallbackReplicas(v Version, current int32) int32 {
	fallback := s.Spec.Fallback
	if !v.since(17, 0) {
		return fallback.Replicas
	}
	switch fallback.Behavior {
	case FallbackCurrent:
		return current
	case FallbackCurrentIfHigher:
		return max(current, fallback.Replicas)
	case FallbackCurrentIfLower:
		return min(current, fallback.Replicas)
	}
	return fallback.Replicas
}

// FallbackAsks is the size that the HPA arrives at for a metric while the
// fallback is active. Before 2.18 the target was cut off to a whole number: with
// a target of 0.5 the fallback asks for none, with 2.5 for a fifth too few.
func (s ScaledObject) FallbackAsks(v Version, metric Metric, current int32) int32 {
	replicas := s.FallbackReplicas(v, current)
	if v.since(18, 0) || metric.TargetMilli == nil || *metric.TargetMilli <= 0 {
		return replicas
	}
	return int32(math.Ceil(math.Trunc(metric.target.AsApproximateFloat64()) * 1000 * float64(replicas) / float64(*metric.TargetMilli)))
}

// fallbackValue is the metric that KEDA reports while the fallback is active:
// what makes the HPA arrive at the fallback's replicas. ok is false where a
// target of type Value has no ready pod to count by.
func (s ScaledObject) fallbackValue(v Version, metric Metric, current, ready int32) (milli int64, ok bool) {
	replicas := s.FallbackReplicas(v, current)
	target, targetType := metric.target.AsApproximateFloat64(), metric.TargetType
	if s.UsesModifiers() {
		modifiers := s.Spec.Advanced.Modifiers
		parsed, err := strconv.ParseFloat(modifiers.Target, 64)
		if err != nil {
			return 0, false
		}
		target, targetType = parsed, modifiers.MetricType
	}
	if !v.since(18, 0) {
		// The target was cut off to a whole number: 0.5 was 0.
		return int64(target) * 1000 * int64(replicas), true
	}
	count := float64(replicas)
	if targetType == TargetValue {
		if ready == 0 {
			return 0, false
		}
		count /= float64(ready)
	}
	return int64(target * 1000 * count), true
}
