package keda

// ServedReason says what the HPA gets when it asks KEDA for a metric.
type ServedReason string

// The reasons of a Served.
const (
	// ServedTrigger: the trigger's value, or what stands in for it.
	ServedTrigger ServedReason = "trigger"
	// ServedComposite: the composite value.
	ServedComposite ServedReason = "composite"
	// ServedFailed: an error, so that the HPA removes no replica.
	ServedFailed ServedReason = "failed"
	// ServedUnknown: KEDA serves no metric of this name.
	ServedUnknown ServedReason = "unknown"
)

// Served is KEDA's answer to the HPA's question for one external metric.
type Served struct {
	Reason ServedReason
	// Milli is the value in thousandths, where there is one.
	Milli int64
	// Composite is set where the answer is composite.
	Composite *Composite
}

// Serve answers the HPA's question for an external metric from the observations
// that KEDA makes for it: of the trigger alone, or of all with scalingModifiers.
func (s ScaledObject) Serve(v Version, metric string, observed []Observed) Served {
	if s.UsesModifiers() && s.Spec.Advanced.Modifiers.Target != "" {
		composite := s.Compose(v, observed)
		served := Served{Reason: ServedComposite, Milli: composite.Milli, Composite: &composite}
		if composite.Failed {
			served.Reason = ServedFailed
		}
		return served
	}
	for _, o := range observed {
		if o.Metric.Name != metric {
			continue
		}
		if o.Failed {
			return Served{Reason: ServedFailed}
		}
		return Served{Reason: ServedTrigger, Milli: o.Milli}
	}
	return Served{Reason: ServedUnknown}
}

// LoopSource says where KEDA's own loop takes a trigger's value from.
type LoopSource string

// The sources of the loop.
const (
	// LoopQueries: the loop asks the trigger's source every pollingInterval.
	LoopQueries LoopSource = "own_query"
	// LoopFromHPA: the loop uses what the HPA's last question observed (2.21).
	LoopFromHPA LoopSource = "hpa_observation"
)

// LoopSource says where the loop takes values from. Since 2.21 it spares its
// own query where it can do nothing beside the HPA: with a minimum, no idle
// count, no cached metrics, no modifiers, and an HPA that is asking.
func (s ScaledObject) LoopSource(v Version, hpaAsks bool) LoopSource {
	if !v.since(21, 0) || !hpaAsks || s.Min() == 0 || s.Spec.IdleReplicaCount != nil || s.UsesModifiers() {
		return LoopQueries
	}
	for _, trigger := range s.Spec.Triggers {
		if trigger.UseCachedMetrics {
			return LoopQueries
		}
	}
	return LoopFromHPA
}
