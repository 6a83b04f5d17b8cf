package explain

import (
	"math"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// triggersOf turns each metric's proposal into an entry of the document.
func triggersOf(link chain.Chain, decision hpa.Decision, check hpa.Check) []record.ScalingTrigger {
	triggers := []record.ScalingTrigger{}
	proposals := decision.Narrowed(check).Proposals
	for i, proposal := range decision.Proposals {
		trigger := triggerOf(proposals[i])
		trigger.Winner = i == check.Winner
		if proposal.Reason != hpa.MetricFailed {
			trigger.Proposes = optionalRange(check.Proposals[i])
		}
		identify(&trigger, link, proposal.Metric)
		triggers = append(triggers, trigger)
	}
	return triggers
}

func triggerOf(proposal hpa.Proposal) record.ScalingTrigger {
	metric := proposal.Metric
	trigger := record.ScalingTrigger{
		Label:       metric.Name,
		Metric:      metric.Name,
		MetricType:  string(metric.Type),
		TargetType:  string(metric.Target),
		Target:      float64(metric.TargetMilli) / 1000,
		Utilization: metric.Seen.Utilization,
		ValueLow:    units(proposal.TotalLow),
		ValueHigh:   units(proposal.TotalHigh),
		AddsAt:      units(proposal.Edges.Add),
		RemovesAt:   units(proposal.Edges.Remove),
		Reason:      string(proposal.Reason),
		Failure:     proposal.Failure,
	}
	if metric.Target == hpa.Utilization && metric.Type != hpa.External {
		trigger.Target = float64(metric.TargetMilli)
	}
	if metric.Seen.Samples != nil {
		trigger.Utilization, trigger.AverageShown = proposal.Shown.Utilization, units(proposal.Shown.Average)
	}
	// An average of no replicas is no value.
	if metric.Seen.Average != nil && proposal.Reason != hpa.NoReplicas {
		trigger.AverageShown = units(metric.Seen.Average)
	}
	if !math.IsNaN(proposal.Ratio) && !math.IsInf(proposal.Ratio, 0) {
		ratio := proposal.Ratio
		trigger.Ratio = &ratio
	}
	trigger.Proposes = optionalRange(proposal.Count)
	if c := proposal.Complete; c != nil {
		trigger.IfSampled = &record.IfSampled{Proposes: countRange(c.Count), Pods: c.Pods, Plain: c.Plain}
	}
	return trigger
}

func units(milli *int64) *float64 {
	if milli == nil {
		return nil
	}
	value := float64(*milli) / 1000
	return &value
}

// identify finds the ScaledObject's trigger behind a metric.
func identify(trigger *record.ScalingTrigger, link chain.Chain, metric hpa.Metric) {
	so := link.ScaledObject
	if so == nil {
		return
	}
	index := -1
	if metric.Type == hpa.External {
		index = so.TriggerOf(metric.Name)
	} else {
		index = slices.IndexFunc(so.Spec.Triggers, func(t keda.Trigger) bool {
			return t.IsResource() && t.Type == metric.Name && t.Metadata["containerName"] == metric.Container
		})
	}
	if health, known := so.Status.Health[metric.Name]; known {
		trigger.Failures = health.NumberOfFailures
	}
	version, _ := kedaVersionOf(link)
	for _, failed := range so.FailedMetrics(version) {
		trigger.FromFallback = trigger.FromFallback || failed.Active && failed.Metric == metric.Name && so.Spec.Fallback != nil
	}
	if activity, known := so.Status.TriggersActivity[metric.Name]; known {
		active := activity.IsActive
		trigger.Active = &active
	}
	if index >= 0 {
		source := so.Spec.Triggers[index]
		trigger.Index, trigger.Name, trigger.Type, trigger.Label = &index, source.Name, source.Type, source.Label()
	}
}

// idleTriggers lists the metrics that a ScaledObject without an HPA would have:
// nothing evaluates them now.
func idleTriggers(link chain.Chain, version hpa.Version) []record.ScalingTrigger {
	if link.ScaledObject == nil {
		return []record.ScalingTrigger{}
	}
	counts := hpa.Exactly(plannedSize(link))
	if link.Workload == nil {
		// The size is not known, and so no total is at which it changes.
		counts.High = max(counts.High, link.ScaledObject.Max())
	}
	decision := hpa.Decide(plannedInput(link, version, moment{}, counts))
	triggers := []record.ScalingTrigger{}
	for _, proposal := range decision.Proposals {
		trigger := triggerOf(proposal)
		identify(&trigger, link, proposal.Metric)
		triggers = append(triggers, trigger)
	}
	return triggers
}

// sourcesOf lists the triggers as the ScaledObject has them.
func sourcesOf(so keda.ScaledObject) []record.ScalingTrigger {
	triggers := []record.ScalingTrigger{}
	for i, source := range so.Spec.Triggers {
		trigger := record.ScalingTrigger{
			Index: &i, Name: source.Name, Label: source.Label(), Type: source.Type,
			Metric: source.MetricName(i), MetricType: string(hpa.External), TargetType: source.MetricType,
			Reason: string(hpa.NotSeen),
		}
		if source.PerReplica() {
			trigger.TargetType = string(hpa.AverageValue)
		}
		if milli, ok := source.Threshold(); ok {
			trigger.Target = float64(milli) / 1000
		}
		triggers = append(triggers, trigger)
	}
	return triggers
}
