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
// trace of the winner that the controller leaves.
func (o Observed) Winner(metrics []Metric) int {
	if o.Active != string(ValidMetricFound) {
		return NoWinner
	}
	_, named, found := strings.Cut(o.ActiveMessage, "calculate a replica count from ")
	if !found {
		return NoWinner
	}
	winner := NoWinner
	for i, metric := range metrics {
		if strings.HasPrefix(named, metric.Named()) {
			if winner != NoWinner {
				// Two metrics have the same text: container resources do.
				return NoWinner
			}
			winner = i
		}
	}
	return winner
}

// Named is how the controller names the metric in its messages, up to the
// selector. An Object metric with an average is named as an external one up
// to 1.37.
func (m Metric) Named() string {
	switch m.Type {
	case External:
		return "external metric " + m.Name + "("
	case Object:
		if m.Target == AverageValue {
			return "external metric " + m.Name + "("
		}
		kind, _, _ := strings.Cut(m.Object, "/")
		return kind + " metric " + m.Name
	case Pods:
		return "pods metric " + m.Name
	case ContainerResource:
		return m.Name + " container resource"
	}
	return m.Name + " resource"
}
