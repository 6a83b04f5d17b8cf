package explain

import (
	"cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// kedaLoopOf explains KEDA's part of a chain; nil without a ScaledObject.
func kedaLoopOf(link chain.Chain, at moment) *record.KEDALoop {
	if link.ScaledObject == nil {
		return nil
	}
	so := *link.ScaledObject
	version, known := kedaVersionOf(link)
	pause := so.Pause()
	out := &record.KEDALoop{
		Version:        version.String(),
		VersionAssumed: !known,
		PollingSeconds: so.PollingInterval().Seconds(),
		Source:         string(so.LoopSource(version, link.HPA != nil && hpa.ObservedIn(link.HPA).Active == "ValidMetricFound")),
		Forced:         so.ForceActive(),
		Pause:          record.KEDAPause{All: pause.All, Replicas: pause.Replicas, ScaleIn: pause.In, ScaleOut: pause.Out},
		Cooldown: record.KEDACooldown{
			Seconds: so.Cooldown().Seconds(), InitialSeconds: so.InitialCooldown().Seconds(), LastActive: so.Status.LastActiveTime,
		},
		Activations: []record.Activation{},
	}
	for _, activation := range so.Activations(version) {
		entry := record.Activation{Metric: activation.Metric, Threshold: activation.Above}
		if seen, ok := so.Status.TriggersActivity[activation.Metric]; ok {
			entry.Active = &seen.IsActive
		}
		out.Activations = append(out.Activations, entry)
	}
	size := countsOf(link).Spec
	if size != nil {
		outlook := so.Outlook(version, *size, at.time)
		out.Active, out.Failed = outlook.Active, outlook.Failed
		if !at.time.IsZero() {
			out.WhenActive, out.WhenInactive = kedaStep(&outlook.WhenActive), kedaStep(&outlook.WhenInactive)
			out.Next = kedaStep(outlook.Next)
		}
	}
	out.Fallback = kedaFallback(so, version, size)
	out.Modifiers = kedaModifiers(so, version)
	return out
}

// kedaVersionOf reads the version that KEDA stamps on its HPAs, else that of the
// operator; where nothing tells it, the newest is taken.
func kedaVersionOf(link chain.Chain) (version keda.Version, known bool) {
	if link.HPA != nil {
		version, known = keda.ParseVersion(kedaVersion(link.HPA.Labels))
	}
	if !known {
		version, known = keda.ParseVersion(link.KEDAVersion)
	}
	if !known {
		return keda.Newest(), false
	}
	return version, true
}

func kedaStep(step *keda.Step) *record.KEDAStep {
	if step == nil {
		return nil
	}
	out := &record.KEDAStep{Reason: string(step.Reason), To: step.To}
	if step.Reason == keda.StepCoolsDown && step.CooldownEnds != nil {
		ends := step.CooldownEnds.UTC()
		out.NotBefore = &ends
	}
	return out
}

func kedaFallback(so keda.ScaledObject, version keda.Version, size *int32) *record.KEDAFallback {
	fallback := so.Spec.Fallback
	if fallback == nil {
		return nil
	}
	out := &record.KEDAFallback{
		Behavior:         cmp.Or(fallback.Behavior, keda.FallbackStatic),
		Replicas:         fallback.Replicas,
		FailureThreshold: fallback.FailureThreshold,
		Failures:         []record.MetricFailure{},
	}
	asked := map[string]*int32{}
	for _, metric := range so.Metrics(version) {
		if size != nil && out.Behavior != keda.FallbackScalingModifiers && metric.Source == keda.SourceExternal {
			asks := so.FallbackAsks(version, metric, *size)
			asked[metric.Name] = &asks
			if out.AsksFor == nil || asks > *out.AsksFor {
				out.AsksFor = &asks
			}
		}
		if problem := so.FallbackProblem(version, metric.TargetType); metric.Source == keda.SourceExternal && problem != keda.FallbackFine {
			out.Problem = string(problem)
		}
	}
	for _, failed := range so.FailedMetrics(version) {
		entry := record.MetricFailure{Metric: failed.Metric, Count: failed.Failures, Active: failed.Active, Off: failed.Off}
		if entry.AsksFor = asked[failed.Metric]; entry.AsksFor == nil {
			entry.AsksFor = out.AsksFor
		}
		if index := so.TriggerOf(failed.Metric); index >= 0 {
			entry.Label = so.Spec.Triggers[index].Label()
		}
		out.Failures = append(out.Failures, entry)
		out.Active = out.Active || failed.Active
	}
	return out
}

func kedaModifiers(so keda.ScaledObject, version keda.Version) *record.KEDAModifiers {
	if !so.UsesModifiers() {
		return nil
	}
	modifiers := so.Spec.Advanced.Modifiers
	return &record.KEDAModifiers{
		Formula: modifiers.Formula, Target: modifiers.Target, ActivationTarget: so.ActivationTarget(),
		MetricType: cmp.Or(modifiers.MetricType, keda.TargetAverageValue), Problem: so.ModifiersProblem(version),
	}
}
