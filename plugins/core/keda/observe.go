package keda

import "strconv"

// ObservedReason says how what KEDA reports of a metric came about.
type ObservedReason string

// The reasons of an Observed.
const (
	// ObservedValue: the trigger's own value.
	ObservedValue ObservedReason = "value"
	// ObservedEmpty: 0 for an empty result; KEDA takes it for healthy.
	ObservedEmpty ObservedReason = "empty_is_zero"
	// ObservedNoFallback: it failed, and there is no fallback that works.
	ObservedNoFallback ObservedReason = "no_fallback"
	// ObservedCounting: it failed, not yet more often than the threshold.
	ObservedCounting ObservedReason = "counting"
	// ObservedFallback: the fallback stands in.
	ObservedFallback ObservedReason = "fallback"
	// ObservedNil: the trigger is nil in the formula (?? gives it a value).
	ObservedNil ObservedReason = "nil_in_formula"
	// ObservedNoReady: the fallback of a target of type Value needs a ready pod.
	ObservedNoReady ObservedReason = "fallback_without_ready_pod"
)

// Observed is one external metric as KEDA reports it.
type Observed struct {
	Metric Metric
	Reason ObservedReason
	// Failed: the HPA gets an error for this metric.
	Failed bool
	// Milli is the value in thousandths, where it has not failed.
	Milli int64
	// Active: the raw value is above the activation threshold, not at it.
	Active bool
	// Fallback: the fallback stands in for the value.
	Fallback bool
	// Failures counts failures in a row, this observation included; nil where
	// KEDA keeps no count.
	Failures *int32
	value    float64
	// loopActive and loopFailed are what KEDA's own loop makes of it.
	loopActive, loopFailed, loopFallback bool
	// nameless: the formula does not find it under the trigger's name.
	nameless bool
}

// Sizes are the counts that an observation may depend on.
type Sizes struct {
	// Current is the target's spec.replicas.
	Current int32
	// Ready counts the ready pods, terminating ones included.
	Ready int32
}

// Observe is one observation of the trigger behind an external metric: what
// KEDA reports of it, and the count of failures after it. Either of the two
// loops observes, and both count (the loop of KEDA itself since 2.19).
func (s ScaledObject) Observe(v Version, metric Metric, reading Reading, sizes Sizes) Observed {
	out := Observed{Metric: metric, Reason: ObservedValue}
	works := s.Spec.Fallback != nil && s.FallbackProblem(v, metric.TargetType) == FallbackFine
	if reading.Failure == "" {
		q := quantity(v, reading.Value)
		out.Milli, out.value = q.MilliValue(), q.AsApproximateFloat64()
		out.Active = reading.Value > s.activation(metric)
		out.loopActive = out.Active
		if reading.Empty {
			out.Reason = ObservedEmpty
		}
		if works {
			out.Failures = new(int32(0))
		}
		return out
	}
	out.Failed, out.loopFailed, out.Reason = true, true, ObservedNoFallback
	if !works {
		return out
	}
	failures := s.failures(metric.Name) + 1
	out.Failures = &failures
	if failures <= s.Spec.Fallback.FailureThreshold {
		out.Reason = ObservedCounting
		return out
	}
	s.fallBack(v, &out, sizes)
	return out
}

// fallBack fills in what the fallback reports.
func (s ScaledObject) fallBack(v Version, out *Observed, sizes Sizes) {
	if v.since(20, 0) && s.Spec.Fallback.Behavior == FallbackScalingModifiers {
		// A placeholder of -1 takes the value's place. Without a formula the
		// HPA is handed the placeholder itself.
		out.Reason, out.Failed, out.loopFailed = ObservedNil, false, false
		out.Milli, out.value = -1000, -1
		return
	}
	milli, ok := s.fallbackValue(v, out.Metric, sizes.Current, sizes.Ready)
	if !ok {
		out.Reason = ObservedNoReady
		return
	}
	q := milliQuantity(milli)
	out.Reason, out.Failed, out.Fallback = ObservedFallback, false, true
	out.Milli, out.value = milli, q.AsApproximateFloat64()
	if v.since(19, 0) {
		out.loopFailed, out.loopFallback, out.loopActive = false, true, true
	}
}

// failures is the count of failures in a row so far.
func (s ScaledObject) failures(metric string) int32 {
	if count := s.Status.Health[metric].NumberOfFailures; count != nil {
		return *count
	}
	return 0
}

// activation is the raw activation threshold.
func (s ScaledObject) activation(metric Metric) float64 {
	if metric.Trigger < 0 {
		return 0
	}
	value, err := strconv.ParseFloat(s.Spec.Triggers[metric.Trigger].Metadata["activationThreshold"], 64)
	if err != nil {
		return 0
	}
	return value
}
