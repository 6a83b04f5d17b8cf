package keda

import "strconv"

// ActivityReason says why KEDA's loop takes a ScaledObject for active or not.
type ActivityReason string

// The reasons of a LoopActivity.
const (
	// ActiveTrigger: a trigger is above its activation threshold.
	ActiveTrigger ActivityReason = "trigger"
	// ActiveFallback: a trigger is in fallback, which counts as active (2.19).
	ActiveFallback ActivityReason = "fallback"
	// ActiveComposite: the composite value is above activationTarget.
	ActiveComposite ActivityReason = "composite"
	// ActiveResources: all triggers are cpu or memory, which always counts.
	ActiveResources ActivityReason = "only_cpu_memory"
	// ActiveNot: none of these.
	ActiveNot ActivityReason = "none"
	// ActiveNoFormula: scalingModifiers are not valid; the loop does nothing.
	ActiveNoFormula ActivityReason = "invalid_modifiers"
)

// LoopActivity is what KEDA's loop concludes from one look at all triggers.
type LoopActivity struct {
	Active bool
	Reason ActivityReason
	// Failed: a trigger failed, and no fallback stands in.
	Failed bool
	// Stopped: the loop ends here, before any decision about the size.
	Stopped bool
	// Fallback: a trigger is in fallback.
	Fallback bool
	// Metrics names the metrics that are active.
	Metrics []string
}

// Activity concludes from the observations of all external triggers whether the
// ScaledObject is active: above the activation threshold, not at it. With
// scalingModifiers the composite value decides alone, and any failure makes it
// inactive.
func (s ScaledObject) Activity(v Version, observed []Observed) LoopActivity {
	out := LoopActivity{Reason: ActiveNot}
	var fallback []Observed
	for _, o := range observed {
		out.Failed = out.Failed || o.loopFailed
		if o.loopFallback {
			fallback = append(fallback, o)
		}
		if o.loopActive && !o.loopFailed {
			out.Metrics = append(out.Metrics, o.Metric.Name)
			out.Active = true
			if out.Reason != ActiveTrigger {
				out.Reason = ActiveTrigger
				if o.loopFallback {
					out.Reason = ActiveFallback
				}
			}
		}
	}
	out.Fallback = len(fallback) > 0
	if s.UsesModifiers() {
		out = s.compositeActivity(v, out, observed, fallback)
	}
	if !out.Stopped && !out.Failed && s.onlyResources() {
		out.Active, out.Reason = true, ActiveResources
	}
	return out
}

func (s ScaledObject) onlyResources() bool {
	for _, trigger := range s.Spec.Triggers {
		if !trigger.IsResource() {
			return false
		}
	}
	return true
}

func (s ScaledObject) compositeActivity(v Version, out LoopActivity, observed, fallback []Observed) LoopActivity {
	out.Active, out.Reason, out.Metrics = false, ActiveNot, nil
	composite := s.compose(v, observed, fallback, out.Failed)
	if composite.Reason == CompositeInvalid {
		out.Stopped, out.Reason = true, ActiveNoFormula
		return out
	}
	if out.Failed {
		return out
	}
	threshold := 0.0
	if text := s.Spec.Advanced.Modifiers.ActivationTarget; text != "" {
		parsed, err := strconv.ParseFloat(text, 64)
		if err != nil {
			out.Stopped, out.Reason = true, ActiveNoFormula
			return out
		}
		threshold = parsed
	}
	for _, value := range composite.values {
		if value > threshold {
			out.Active, out.Reason, out.Metrics = true, ActiveComposite, []string{CompositeMetric}
		}
	}
	return out
}
