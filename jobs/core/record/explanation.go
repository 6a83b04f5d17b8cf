package record

import "time"

// KindScalingExplanation is the document of explain-scaling.
const KindScalingExplanation = "ScalingExplanation"

// ScalingExplanation says why a workload has the size that it has, and what
// would change that. Counts of replicas of which only bounds are known are a
// CountRange; everything that the table for people says is derived from it.
type ScalingExplanation struct {
	TypeMeta
	// Namespace is "" where saved objects of several are explained.
	Namespace string `json:"namespace"`
	// Target is what was asked for, as TYPE/NAME.
	Target string `json:"target"`
	// AsOf says which moment is explained.
	AsOf              ExplainedMoment `json:"as_of"`
	KubernetesVersion string          `json:"kubernetes_version"`
	KEDAVersion       string          `json:"keda_version"`
	// Chains has one entry a workload: a disaggregated service has two.
	Chains []ScalingChain `json:"chains"`
	// Unread lists inputs that could not be read; what depends on them is
	// unknown in the chains.
	Unread []UnreadInput `json:"unread_inputs"`
}

// ExplainedMoment is the moment that an explanation is about.
type ExplainedMoment struct {
	// Time is null where the objects mention no time.
	Time *time.Time `json:"time"`
	// Source is "cluster" (read just now), "objects" (the newest time that saved
	// objects mention) or "prometheus" (the last scrape before a past moment).
	Source string `json:"source"`
	// SlackSeconds is how much earlier the controller's last sync may have been.
	SlackSeconds float64 `json:"slack_seconds"`
	// ClockSeconds is how far the API server's clock was ahead of the reader's,
	// where they differ: Time is the server's.
	ClockSeconds float64 `json:"clock_seconds,omitempty"`
}

// UnreadInput is an optional input that was missing.
type UnreadInput struct {
	// Input is what it is for: "events", "pods", "owners", "keda".
	Input     string `json:"input"`
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Message   string `json:"message"`
}

// ChainLink names one object of a chain.
type ChainLink struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// CountRange is a count of replicas with bounds, both included. High is null
// where there is no upper bound. Low and High are equal where it is exact.
type CountRange struct {
	Low  int32  `json:"low"`
	High *int32 `json:"high"`
}

// The states of a chain.
const (
	// ChainScaled: an HPA decides the size.
	ChainScaled = "scaled"
	// ChainZero: the size is zero; KEDA's loop decides when to leave it.
	ChainZero = "zero"
	// ChainPaused: KEDA is paused, and there is no HPA.
	ChainPaused = "paused"
	// ChainStatic: nothing scales the workload.
	ChainStatic = "static"
	// ChainNoHPA: a ScaledObject is there and its HPA is not.
	ChainNoHPA = "no_hpa"
	// ChainNotSynced: the controller has not looked at the HPA yet.
	ChainNotSynced = "not_synced"
)

// ScalingChain explains one workload.
type ScalingChain struct {
	// Role is "decode" or "prefill" for a disaggregated service, else "".
	Role string `json:"role"`
	// Namespace is that of all links.
	Namespace string `json:"namespace"`
	// Links leads from the root owner to the workload.
	Links      []ChainLink    `json:"links"`
	State      string         `json:"state"`
	Replicas   ReplicaCounts  `json:"replicas"`
	LastChange *ReplicaChange `json:"last_change"`
	// Pods is null where they were not read.
	Pods *ScalingPods `json:"pods"`
	// Credentials are what the triggers' authenticationRefs name.
	Credentials []TriggerCredentials `json:"credentials"`
	Triggers    []ScalingTrigger     `json:"triggers"`
	// Decision is null where no HPA made one.
	Decision *ScalingDecision `json:"decision"`
	// Check is null without a decision.
	Check *ControllerCheck `json:"check"`
	// KEDA is what KEDA itself does, null without a ScaledObject.
	KEDA     *KEDALoop `json:"keda"`
	Warnings []Finding `json:"warnings"`
	// History is null unless it was asked for, oldest first.
	History *[]HistoryEntry `json:"history,omitempty"`
	// Now is null unless fresh values were asked for.
	Now *ScalingNow `json:"now,omitempty"`
	// Past is null unless a past moment was asked of Prometheus.
	Past *ScalingPast `json:"past,omitempty"`
	// WhatIf is null unless changes were asked for.
	WhatIf *ScalingWhatIf `json:"what_if,omitempty"`
}

// ReplicaCounts are the sizes as they were read; null where unknown.
type ReplicaCounts struct {
	Spec   *int32 `json:"spec"`
	Status *int32 `json:"status"`
	Ready  *int32 `json:"ready"`
	Min    *int32 `json:"min"`
	Max    *int32 `json:"max"`
	Idle   *int32 `json:"idle"`
}

// ReplicaChange is the last change of the size that something proves.
type ReplicaChange struct {
	// Time is null where nothing tells it.
	Time *time.Time `json:"time"`
	// By is the field manager, "" where it is not known; Reason then says why.
	By string `json:"by"`
	// To is the size, null where it is not known.
	To *int32 `json:"to"`
	// Reason is the writer's own, where an event gives it.
	Reason string `json:"reason"`
}

// ScalingTrigger is one metric and what it asks for.
type ScalingTrigger struct {
	// Index and Name are those of the ScaledObject's trigger; null and "" for
	// a metric of an HPA without KEDA.
	Index *int   `json:"index"`
	Name  string `json:"name"`
	Label string `json:"label"`
	// Type is the trigger's, such as prometheus; "" without KEDA.
	Type       string `json:"type"`
	Metric     string `json:"metric"`
	MetricType string `json:"metric_type"`
	// TargetType is AverageValue, Value or Utilization; Target is in the
	// metric's unit, for Utilization in percent.
	TargetType string  `json:"target_type"`
	Target     float64 `json:"target"`
	// ValueLow and ValueHigh bound the total that the HPA saw, AverageShown is
	// what its status shows. All are null where it saw none.
	ValueLow     *float64 `json:"value_low"`
	ValueHigh    *float64 `json:"value_high"`
	AverageShown *float64 `json:"average_shown"`
	Utilization  *int32   `json:"utilization_percent"`
	Ratio        *float64 `json:"ratio"`
	// Proposes is null where the metric failed or is not modelled.
	Proposes *CountRange `json:"proposes"`
	// IfSampled is null where a metric of pods needs no such assumption.
	IfSampled *IfSampled `json:"if_sampled"`
	Reason    string     `json:"reason"`
	// Failure is the controller's reason where the metric failed.
	Failure string `json:"failure"`
	Winner  bool   `json:"winner"`
	// AddsAt is the smallest total at which this metric alone adds a replica,
	// RemovesAt the largest at which it asks for fewer; tolerance included.
	AddsAt    *float64 `json:"adds_at"`
	RemovesAt *float64 `json:"removes_at"`
	// Active is KEDA's activation of the trigger; null where unknown.
	Active   *bool  `json:"active"`
	Failures *int32 `json:"failures"`
	// FromFallback says that KEDA gives the fallback's value, not the source's.
	FromFallback bool `json:"from_fallback"`
}

// IfSampled is what a metric of pods asks for if each pod that ran had a sample,
// which no status tells.
type IfSampled struct {
	Proposes CountRange `json:"proposes"`
	// Pods is how many had one that counts.
	Pods int32 `json:"pods"`
	// Plain says that Proposes is the ratio times Pods, rounded up; otherwise
	// starting pods are taken to use nothing.
	Plain bool `json:"plain"`
}

// ScalingDecision is the HPA's decision, step by step.
type ScalingDecision struct {
	// Path is "metrics", "above_max", "below_min" or "disabled".
	Path string `json:"path"`
	// From is the size before the sync.
	From int32 `json:"from"`
	// Min and Max are the HPA's bounds, which the sync kept to. A ScaledObject
	// that was edited may want others until KEDA has written them.
	Min int32 `json:"min"`
	Max int32 `json:"max"`
	// Raw is the largest proposal.
	Raw      *CountRange `json:"raw"`
	Blocking string      `json:"blocking"`
	// Tolerances apply to every ratio.
	ToleranceUp   float64            `json:"tolerance_up"`
	ToleranceDown float64            `json:"tolerance_down"`
	Stabilization *StabilizationStep `json:"stabilization"`
	RateLimit     *RateLimitStep     `json:"rate_limit"`
	Desired       CountRange         `json:"desired"`
	// Exact says whether Desired holds one value.
	Exact bool `json:"exact"`
	// HiddenInputs names what of the controller's memory leaves it inexact.
	HiddenInputs []string `json:"hidden_inputs"`
	// UpDisabled and DownDisabled say that the behavior forbids the direction.
	UpDisabled   bool `json:"up_disabled"`
	DownDisabled bool `json:"down_disabled"`
	// Assumes says what must hold for the bounds, where no object proves it.
	Assumes []string `json:"assumes"`
}

// StabilizationStep holds a size against recent proposals.
type StabilizationStep struct {
	// Applied says whether it changed the raw size; null where unknown.
	Applied           *bool   `json:"applied"`
	Reason            string  `json:"reason"`
	UpWindowSeconds   float64 `json:"up_window_seconds"`
	DownWindowSeconds float64 `json:"down_window_seconds"`
	// Result is the size after it, narrowed by the controller's conditions.
	Result CountRange `json:"result"`
	// ReleasedBy is when the entry that holds the size leaves the window at
	// the latest, if the proposals stay as they are; null if none holds it.
	ReleasedBy *time.Time `json:"released_by"`
}

// RateLimitStep applies policies, minimum and maximum.
type RateLimitStep struct {
	Applied *bool  `json:"applied"`
	Reason  string `json:"reason"`
	// Policy is the rule of the direction in words, such as "+100% per 30s".
	Policy string `json:"policy"`
	// Allows is the size that the policies allow in the direction of the raw
	// size; null where that is the current size.
	Allows *CountRange `json:"allows"`
}

// ControllerCheck compares the model with what the controller wrote.
type ControllerCheck struct {
	// Compared is false where the last sync left nothing to compare with.
	Compared bool `json:"compared"`
	Agrees   bool `json:"agrees"`
	// DesiredReplicas and the reasons are the controller's own.
	DesiredReplicas int32                    `json:"desired_replicas"`
	AbleToScale     string                   `json:"able_to_scale"`
	ScalingActive   string                   `json:"scaling_active"`
	ScalingLimited  string                   `json:"scaling_limited"`
	Disagreements   []ControllerDisagreement `json:"disagreements"`
}

// ControllerDisagreement is a point where both differ.
type ControllerDisagreement struct {
	What       string `json:"what"`
	Model      string `json:"model"`
	Controller string `json:"controller"`
}

// The severities of a Finding.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Finding is something in the objects that is likely not what was meant.
type Finding struct {
	// ID is stable, for programs.
	ID       string `json:"id"`
	Severity string `json:"severity"`
	// Trigger is the metric concerned, "" for the whole chain.
	Trigger string `json:"trigger"`
	// Message carries the arithmetic on this object.
	Message string `json:"message"`
	Fix     string `json:"fix"`
}
