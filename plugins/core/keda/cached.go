package keda

// ObserveCached is the observation that the HPA's question makes of a trigger
// with useCachedMetrics: what KEDA's loop recorded at its last turn takes the
// place of a query, and is counted once more. A record of the fallback is a
// value like any other here, so that it sets the count of failures back; and with
// scalingModifiers it bears the composite's name, so that the formula finds no
// value for the trigger.
func (s ScaledObject) ObserveCached(v Version, record Observed, sizes Sizes) Observed {
	if record.loopFailed {
		return s.Observe(v, record.Metric, Reading{Failure: QueryOther}, sizes)
	}
	out := record
	out.nameless = record.Fallback && s.UsesModifiers()
	out.Failed, out.Fallback, out.loopFallback, out.Failures = false, false, false, nil
	if s.Spec.Fallback != nil && s.FallbackProblem(v, record.Metric.TargetType) == FallbackFine {
		out.Failures = new(int32(0))
	}
	return out
}
