package hpa

import (
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// FromObject reads what an HPA object says about its last sync: the spec, and
// in status the values that the sync saw. Replicas.Spec is the size that the
// sync started from; status and ready replicas are the caller's knowledge.
func FromObject(object *autoscalingv2.HorizontalPodAutoscaler, status, ready Range, version Version, now time.Time) Input {
	in := Input{
		Version:  version,
		Now:      now,
		Replicas: Replicas{Spec: object.Status.CurrentReplicas, Status: status, Ready: ready},
		Min:      defaultMinReplicas,
		Max:      object.Spec.MaxReplicas,
		Behavior: behaviorOf(object.Spec.Behavior),
	}
	if object.Spec.MinReplicas != nil {
		in.Min = *object.Spec.MinReplicas
	}
	observed := ObservedIn(object)
	in.SpecSince = observed.SpecTime
	// A rescale from zero has cleared the condition that the sync still saw.
	in.ScaledToZero = observed.ScaledToZero || (observed.Current == 0 && observed.Able == string(SucceededRescale))
	if reason := ActiveReason(observed.Active); reason == InvalidSelector || reason == AmbiguousSelector {
		in.Unselectable = reason
	}
	for i, spec := range object.Spec.Metrics {
		metric := metricOf(spec)
		var slot *autoscalingv2.MetricStatus
		if i < len(object.Status.CurrentMetrics) {
			slot = &object.Status.CurrentMetrics[i]
		}
		metric.Seen = observed.see(metric, slot, len(object.Status.CurrentMetrics) > 0)
		in.Metrics = append(in.Metrics, metric)
	}
	return in
}

func metricOf(spec autoscalingv2.MetricSpec) Metric {
	metric := Metric{Type: MetricType(spec.Type)}
	var target autoscalingv2.MetricTarget
	switch {
	case spec.External != nil:
		metric.Name, target = spec.External.Metric.Name, spec.External.Target
		// The controller looks at averageValue first, whatever the type says.
		if target.AverageValue != nil {
			target.Type = autoscalingv2.AverageValueMetricType
		} else if target.Value != nil {
			target.Type = autoscalingv2.ValueMetricType
		}
	case spec.Object != nil:
		metric.Name, target = spec.Object.Metric.Name, spec.Object.Target
		metric.Object = spec.Object.DescribedObject.Kind + "/" + spec.Object.DescribedObject.Name
	case spec.Pods != nil:
		metric.Name, target = spec.Pods.Metric.Name, spec.Pods.Target
	case spec.Resource != nil:
		metric.Name, target = string(spec.Resource.Name), spec.Resource.Target
	case spec.ContainerResource != nil:
		metric.Name, target = string(spec.ContainerResource.Name), spec.ContainerResource.Target
		metric.Container = spec.ContainerResource.Container
	}
	// Of a resource too, an average value goes before a utilization.
	if (spec.Resource != nil || spec.ContainerResource != nil) && target.AverageValue != nil {
		target.Type = autoscalingv2.AverageValueMetricType
	}
	metric.Target = TargetType(target.Type)
	switch {
	case metric.Target == AverageValue && target.AverageValue != nil:
		metric.TargetMilli = target.AverageValue.MilliValue()
	case metric.Target == Value && target.Value != nil:
		metric.TargetMilli = target.Value.MilliValue()
	case metric.Target == Utilization && target.AverageUtilization != nil:
		metric.TargetMilli = int64(*target.AverageUtilization)
	}
	return metric
}

// see reads a slot of status.currentMetrics. A failed metric leaves a slot
// without a type (from 1.29 on); a sync that computes nothing leaves no slot.
func (o Observed) see(metric Metric, slot *autoscalingv2.MetricStatus, any bool) Observation {
	failed := strings.HasPrefix(o.Active, "FailedGet") || o.Active == "InvalidMetricSourceType"
	switch {
	case slot == nil && !any && failed:
		return Observation{State: Failed, Reason: o.Active}
	case slot == nil:
		return Observation{State: Unknown}
	case slot.Type == "":
		reason := "FailedGet" + string(metric.Type) + "Metric"
		return Observation{State: Failed, Reason: reason}
	case MetricType(slot.Type) != metric.Type:
		return Observation{State: Unknown}
	}
	var name string
	var current autoscalingv2.MetricValueStatus
	switch {
	case slot.External != nil:
		name, current = slot.External.Metric.Name, slot.External.Current
	case slot.Object != nil:
		name, current = slot.Object.Metric.Name, slot.Object.Current
	case slot.Pods != nil:
		name, current = slot.Pods.Metric.Name, slot.Pods.Current
	case slot.Resource != nil:
		name, current = string(slot.Resource.Name), slot.Resource.Current
	case slot.ContainerResource != nil:
		name, current = string(slot.ContainerResource.Name), slot.ContainerResource.Current
	}
	if name != metric.Name {
		return Observation{State: Unknown}
	}
	seen := Observation{State: Seen, Utilization: current.AverageUtilization}
	if current.Value != nil {
		total := milliOf(*current.Value)
		seen.Total = &total
	}
	if current.AverageValue != nil {
		average := milliOf(*current.AverageValue)
		seen.Average = &average
	}
	return seen
}

// behaviorOf fills in what the API server fills in when a behavior is set at
// all: both directions get rules.
func behaviorOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) *Behavior {
	if behavior == nil {
		return nil
	}
	noWindow := time.Duration(0)
	quarter := 15 * time.Second
	up := Rules{Window: &noWindow, Select: SelectMax, Policies: []Policy{{PodsPolicy, 4, quarter}, {PercentPolicy, 100, quarter}}}
	down := Rules{Select: SelectMax, Policies: []Policy{{PercentPolicy, 100, quarter}}}
	return &Behavior{Up: rulesOf(behavior.ScaleUp, up), Down: rulesOf(behavior.ScaleDown, down)}
}

func rulesOf(given *autoscalingv2.HPAScalingRules, rules Rules) Rules {
	if given == nil {
		return rules
	}
	if given.StabilizationWindowSeconds != nil {
		window := time.Duration(*given.StabilizationWindowSeconds) * time.Second
		rules.Window = &window
	}
	if given.SelectPolicy != nil {
		rules.Select = SelectPolicy(*given.SelectPolicy)
	}
	if given.Policies != nil {
		rules.Policies = nil
		for _, p := range given.Policies {
			rules.Policies = append(rules.Policies, Policy{PolicyType(p.Type), p.Value, time.Duration(p.PeriodSeconds) * time.Second})
		}
	}
	if given.Tolerance != nil {
		tolerance := given.Tolerance.AsApproximateFloat64()
		rules.Tolerance = &tolerance
	}
	return rules
}
