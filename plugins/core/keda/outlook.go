package keda

import (
	"strconv"
	"time"
)

// Outlook is what KEDA's loop does next by what its last turn left in the
// ScaledObject's status.
type Outlook struct {
	// Active and Failed are the last turn's conclusions; Active is nil where
	// the status has none.
	Active *bool
	Failed bool
	// Next is what the next turn does if nothing changes, nil where Active is.
	Next *Step
	// WhenActive and WhenInactive are the two ways that the next turn can go.
	WhenActive, WhenInactive Step
}

// Outlook reads the last turn's conclusions and decides the next at a size.
func (s ScaledObject) Outlook(v Version, current int32, now time.Time) Outlook {
	out := Outlook{
		WhenActive:   s.Step(v, current, LoopActivity{Active: true}, now),
		WhenInactive: s.Step(v, current, LoopActivity{}, now),
	}
	if ready, known := s.Condition("Ready"); known {
		out.Failed = ready.Reason == ReadyTriggerError || ready.Reason == ReadyPartialError
	}
	active, known := s.Condition("Active")
	if known && (active.Status == statusTrue || active.Status == statusFalse) {
		was := active.Status == statusTrue
		out.Active = &was
		next := s.Step(v, current, LoopActivity{Active: was, Failed: out.Failed}, now)
		out.Next = &next
	}
	return out
}

// FailedMetric counts the failures in a row of one metric.
type FailedMetric struct {
	Metric   string
	Failures int32
	// Active: the fallback stands in for it. Off: it does nothing for a metric
	// of this type, however often that fails.
	Active, Off bool
}

// FailedMetrics lists the external metrics that fail now, in their order, by
// the health in the status. KEDA keeps it only where a fallback works.
func (s ScaledObject) FailedMetrics(v Version) []FailedMetric {
	failed := []FailedMetric{}
	for _, name := range s.Status.ExternalMetricNames {
		health := s.Status.Health[name]
		if health.Status != "Failing" || health.NumberOfFailures == nil || s.Spec.Fallback == nil {
			continue
		}
		count := *health.NumberOfFailures
		one := FailedMetric{Metric: name, Failures: count}
		if index := s.TriggerOf(name); index >= 0 {
			one.Off = s.FallbackProblem(v, s.metricOf(v, index, s.Spec.Triggers[index]).TargetType) != FallbackFine
		}
		one.Active = !one.Off && count > s.Spec.Fallback.FailureThreshold
		failed = append(failed, one)
	}
	return failed
}

// Threshold is the value above which a metric makes the object active.
type Threshold struct {
	Metric string
	Above  float64
}

// Activations lists what makes the object active: the composite metric alone,
// or any external trigger.
func (s ScaledObject) Activations(v Version) []Threshold {
	activations := []Threshold{}
	for _, metric := range s.Metrics(v) {
		if metric.Source != SourceExternal {
			continue
		}
		threshold := Threshold{Metric: metric.Name, Above: s.activation(metric)}
		if metric.Trigger < 0 {
			threshold.Above = s.ActivationTarget()
		}
		activations = append(activations, threshold)
	}
	return activations
}

// ActivationTarget is scalingModifiers.activationTarget, 0 unless set.
func (s ScaledObject) ActivationTarget() float64 {
	value, err := strconv.ParseFloat(s.Spec.Advanced.Modifiers.ActivationTarget, 64)
	if err != nil {
		return 0
	}
	return value
}

// ModifiersProblem is the message for which KEDA refuses the scalingModifiers;
// "" without a problem.
func (s ScaledObject) ModifiersProblem(v Version) string {
	if !s.UsesModifiers() {
		return ""
	}
	modifiers := s.Spec.Advanced.Modifiers
	if modifiers.Formula != "" {
		if _, err := s.CompileFormula(v); err != nil {
			return err.Error()
		}
	}
	if modifiers.ActivationTarget != "" {
		if _, err := strconv.ParseFloat(modifiers.ActivationTarget, 64); err != nil {
			return "activationTarget is no number: " + modifiers.ActivationTarget
		}
	}
	return ""
}
