package record

import "time"

// KEDALoop is KEDA's part of an explanation: the loop that moves a workload
// between zero, its idle count and its minimum, and what stands in for triggers
// that fail. It is of the ScaledObject's status: as of the loop's last turn.
type KEDALoop struct {
	// Version is the version of KEDA whose rules were taken; VersionAssumed says
	// that nothing tells it, and the newest known one was taken.
	Version        string `json:"version"`
	VersionAssumed bool   `json:"version_assumed"`
	// PollingSeconds is the pace of the loop.
	PollingSeconds float64 `json:"polling_seconds"`
	// Source is where the loop takes values from: "own_query", or
	// "hpa_observation" since 2.21.
	Source string `json:"source"`
	// Active is what the last turn concluded, null where unknown; Failed says
	// that a trigger failed in it.
	Active *bool `json:"active"`
	Failed bool  `json:"failed"`
	// Forced says that an annotation makes it active.
	Forced bool      `json:"forced"`
	Pause  KEDAPause `json:"pause"`
	// Next is what the next turn does if nothing changes; WhenActive and
	// WhenInactive are the two ways it can go. All are null where the size or
	// the time is not known, Next also where Active is not.
	Next         *KEDAStep      `json:"next"`
	WhenActive   *KEDAStep      `json:"when_active"`
	WhenInactive *KEDAStep      `json:"when_inactive"`
	Cooldown     KEDACooldown   `json:"cooldown"`
	Activations  []Activation   `json:"activations"`
	Fallback     *KEDAFallback  `json:"fallback"`
	Modifiers    *KEDAModifiers `json:"modifiers"`
}

// KEDAPause is how a ScaledObject is paused.
type KEDAPause struct {
	// All: there is no HPA, and no loop. Replicas is the size that is held,
	// null for the size that there is.
	All      bool   `json:"all"`
	Replicas *int32 `json:"replicas"`
	// ScaleIn and ScaleOut: steps in that direction are off.
	ScaleIn  bool `json:"scale_in"`
	ScaleOut bool `json:"scale_out"`
}

// KEDAStep is one turn of the loop.
type KEDAStep struct {
	Reason string `json:"reason"`
	To     int32  `json:"to"`
	// NotBefore is the end of the cooldown that it waits for, or null.
	NotBefore *time.Time `json:"not_before"`
}

// KEDACooldown is the wait on the way to zero or to the idle count.
type KEDACooldown struct {
	Seconds        float64 `json:"seconds"`
	InitialSeconds float64 `json:"initial_seconds"`
	// LastActive is null for an object that never was active.
	LastActive *time.Time `json:"last_active"`
}

// Activation is the value above which a metric makes the object active.
type Activation struct {
	Metric    string  `json:"metric"`
	Threshold float64 `json:"threshold"`
	// Active is the last turn's; null where unknown.
	Active *bool `json:"active"`
}

// KEDAFallback is what stands in for metrics that fail.
type KEDAFallback struct {
	Behavior string `json:"behavior"`
	Replicas int32  `json:"replicas"`
	// AsksFor is the size that it asks for at the current size; null where that
	// is not known, and with behavior scalingModifiers.
	AsksFor *int32 `json:"asks_for"`
	// FailureThreshold failures in a row are not enough: one more is.
	FailureThreshold int32 `json:"failure_threshold"`
	// Problem says why it does nothing: "negative", "target_no_integer" or
	// "value_unsupported"; "" where it works.
	Problem string `json:"problem"`
	// Active says that it stands in for at least one metric.
	Active   bool            `json:"active"`
	Failures []MetricFailure `json:"failures"`
}

// MetricFailure counts the failures in a row of one metric.
type MetricFailure struct {
	Metric string `json:"metric"`
	// Label is what a person calls the trigger, "" where none is known.
	Label  string `json:"label"`
	Count  int32  `json:"count"`
	Active bool   `json:"active"`
	// Off: the fallback does nothing for it, however often it fails.
	Off bool `json:"off"`
	// AsksFor is as that of the fallback, for this metric: before KEDA 2.18 it
	// may be less, as the target was cut off to a whole number.
	AsksFor *int32 `json:"asks_for"`
}

// KEDAModifiers are the scalingModifiers.
type KEDAModifiers struct {
	Formula          string  `json:"formula"`
	Target           string  `json:"target"`
	ActivationTarget float64 `json:"activation_target"`
	MetricType       string  `json:"metric_type"`
	// Problem is the message for which KEDA refuses them, "" if it does not.
	Problem string `json:"problem"`
}
