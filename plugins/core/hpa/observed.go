package hpa

import (
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// Observed is what the controller wrote about its last sync.
type Observed struct {
	// Synced is false for an HPA that no controller has looked at yet.
	Synced bool
	// Current is the size before the sync, Desired the one that it asked for.
	Current, Desired int32
	// Able, Active and Limited are the reasons of the three conditions; a
	// message follows where it tells more than the reason.
	Able, Active, Limited        string
	AbleTrue, ActiveTrue         bool
	AbleMessage, ActiveMessage   string
	LimitedTrue, ScaledToZero    bool
	LastScale                    *time.Time
	newestTransition, statusTime time.Time
	// SpecTime is when somebody last wrote something other than the status, as
	// managedFields tell; nil without them.
	SpecTime *time.Time
}

// ObservedIn reads the status of an HPA.
func ObservedIn(object *autoscalingv2.HorizontalPodAutoscaler) Observed {
	status := object.Status
	o := Observed{Current: status.CurrentReplicas, Desired: status.DesiredReplicas, Synced: len(status.Conditions) > 0}
	for _, condition := range status.Conditions {
		isTrue := condition.Status == "True"
		switch condition.Type {
		case autoscalingv2.AbleToScale:
			o.Able, o.AbleTrue, o.AbleMessage = condition.Reason, isTrue, condition.Message
		case autoscalingv2.ScalingActive:
			o.Active, o.ActiveTrue, o.ActiveMessage = condition.Reason, isTrue, condition.Message
		case autoscalingv2.ScalingLimited:
			o.Limited, o.LimitedTrue = condition.Reason, isTrue
		case "ScaledToZero":
			o.ScaledToZero = isTrue
		}
		if condition.LastTransitionTime.After(o.newestTransition) {
			o.newestTransition = condition.LastTransitionTime.Time
		}
	}
	if status.LastScaleTime != nil {
		at := status.LastScaleTime.Time
		o.LastScale = &at
		if at.After(o.newestTransition) {
			o.newestTransition = at
		}
	}
	for _, entry := range object.ManagedFields {
		if entry.Subresource == "status" && entry.Time != nil && entry.Time.After(o.statusTime) {
			o.statusTime = entry.Time.Time
		}
		if entry.Subresource == "" && entry.Time != nil && (o.SpecTime == nil || entry.Time.After(*o.SpecTime)) {
			at := entry.Time.Time
			o.SpecTime = &at
		}
	}
	return o
}

// StatusTime is when the controller last changed the status: a sync that
// changes nothing in it leaves no trace. It is zero where managedFields are
// not given.
func (o Observed) StatusTime() time.Time { return o.statusTime }

// Newest is the newest time that the status mentions.
func (o Observed) Newest() time.Time {
	if o.statusTime.After(o.newestTransition) {
		return o.statusTime
	}
	return o.newestTransition
}

// Failing says that the sync could not compute a size at all.
func (o Observed) Failing() bool {
	return o.Synced && (!o.AbleTrue || (o.Active != "" && !o.ActiveTrue))
}

// Winner returns the index of the metric that ValidMetricFound names, the only
// trace of the winner that the controller leaves. It is NoWinner where several
// metrics have the name.
func (o Observed) Winner(metrics []Metric) int {
	if named := o.winners(metrics); len(named) == 1 {
		return named[0]
	}
	return NoWinner
}

// winners returns all metrics that the condition may mean: two container
// resources have the same text.
func (o Observed) winners(metrics []Metric) []int {
	if o.Active != string(ValidMetricFound) {
		return nil
	}
	_, text, found := strings.Cut(o.ActiveMessage, "calculate a replica count from ")
	if !found {
		return nil
	}
	var named []int
	for i, metric := range metrics {
		if metric.isNamed(text) {
			named = append(named, i)
		}
	}
	return named
}

// isNamed says whether the controller calls the metric so. A selector follows
// the name of an external metric; an Object metric with an average is named
// like one up to 1.37.
func (m Metric) isNamed(text string) bool {
	external := strings.HasPrefix(text, "external metric "+m.Name+"(")
	kind, _, _ := strings.Cut(m.Object, "/")
	object := kind + " metric " + m.Name
	percent := " utilization (percentage of request)"
	switch {
	case m.Type == External:
		return external
	case m.Type == Object && m.Target == AverageValue:
		return external || text == object || strings.HasPrefix(text, object+"(")
	case m.Type == Object:
		return text == object
	case m.Type == Pods:
		return text == "pods metric "+m.Name
	case m.Target != Utilization:
		return text == m.Name+" resource"
	case m.Type == ContainerResource:
		return text == m.Name+" container resource"+percent
	}
	return text == m.Name+" resource"+percent
}
