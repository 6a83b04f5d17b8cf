package keda

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The types of a metric of the HPA that KEDA makes.
const (
	SourceContainerResource = "ContainerResource"
	SourceExternal          = "External"
	SourceResource          = "Resource"
)

// The types of a target.
const (
	TargetAverageValue = "AverageValue"
	TargetValue        = "Value"
	TargetUtilization  = "Utilization"
)

// Metric is one metric of the HPA that KEDA makes of a ScaledObject.
type Metric struct {
	// Source is External, Resource or ContainerResource.
	Source string
	// Name is that of the external metric, or the resource's. It is "" for a
	// trigger whose name neither its type nor status.externalMetricNames tell.
	Name, Container string
	// Trigger is the trigger's index, -1 for a composite metric.
	Trigger int
	// TargetType is AverageValue, Value or Utilization.
	TargetType string
	// TargetMilli is the target in thousandths, for Utilization in percent; nil
	// where the trigger's type keeps it under a name that is not known here.
	TargetMilli *int64
	target      resource.Quantity
}

// Metrics returns the HPA's metrics in the order in which KEDA writes them: all
// triggers in theirs, then sorted by the type of the source. KEDA's sort is not
// stable: with more than twelve metrics those of one type may be in any order,
// so that a metric is found by its name.
func (s ScaledObject) Metrics(v Version) []Metric {
	var metrics []Metric
	for i, trigger := range s.Spec.Triggers {
		metrics = append(metrics, s.metricOf(v, i, trigger))
	}
	slices.SortStableFunc(metrics, func(a, b Metric) int { return cmp.Compare(a.Source, b.Source) })
	target, ok := s.compositeTarget()
	if !ok {
		return metrics
	}
	// Only what is Resource stays: a cpu trigger of one container is dropped.
	metrics = slices.DeleteFunc(metrics, func(m Metric) bool { return m.Source != SourceResource })
	composite := milliQuantity(int64(target * 1000))
	milli := composite.MilliValue()
	return append(metrics, Metric{
		Source: SourceExternal, Name: CompositeMetric, Trigger: -1, target: composite,
		TargetType: cmp.Or(s.Spec.Advanced.Modifiers.MetricType, TargetAverageValue), TargetMilli: &milli,
	})
}

// MetricOf is the metric of the trigger at index by itself: with
// scalingModifiers the HPA has none for it.
func (s ScaledObject) MetricOf(v Version, index int) Metric {
	return s.metricOf(v, index, s.Spec.Triggers[index])
}

func (s ScaledObject) metricOf(v Version, index int, trigger Trigger) Metric {
	if trigger.IsResource() {
		return resourceMetric(index, trigger)
	}
	metric := Metric{
		Source: SourceExternal, Name: s.externalName(index), Trigger: index,
		TargetType: cmp.Or(trigger.MetricType, TargetAverageValue),
	}
	if value, err := strconv.ParseFloat(trigger.Metadata["threshold"], 64); err == nil {
		metric.target = quantity(v, value)
		milli := metric.target.MilliValue()
		metric.TargetMilli = &milli
	}
	if trigger.Type == "cron" {
		// A cron trigger reports its desired replicas against a target of 1.
		milli := int64(1000)
		metric.target, metric.TargetMilli = *resource.NewQuantity(1, resource.DecimalSI), &milli
	}
	return metric
}

// resourceMetric is what a cpu or memory trigger becomes: the metrics server
// answers for it, and KEDA never sees its value.
func resourceMetric(index int, trigger Trigger) Metric {
	metric := Metric{
		Source: SourceResource, Name: trigger.Type, Container: trigger.Metadata["containerName"], Trigger: index,
		TargetType: cmp.Or(trigger.MetricType, trigger.Metadata["type"]),
	}
	if metric.Container != "" {
		metric.Source = SourceContainerResource
	}
	text := trigger.Metadata["value"]
	if metric.TargetType == TargetUtilization {
		if percent, err := strconv.ParseInt(text, 10, 32); err == nil {
			metric.TargetMilli = &percent
		}
		return metric
	}
	if q, err := resource.ParseQuantity(text); err == nil {
		milli := q.MilliValue()
		metric.target, metric.TargetMilli = q, &milli
	}
	return metric
}

// externalName is the name of the external metric of the trigger at index.
func (s ScaledObject) externalName(index int) string {
	if name := s.Spec.Triggers[index].MetricName(index); name != "" {
		return name
	}
	prefix := "s" + strconv.Itoa(index) + "-"
	for _, name := range s.Status.ExternalMetricNames {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return ""
}
