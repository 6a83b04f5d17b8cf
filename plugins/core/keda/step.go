package keda

import "time"

// StepReason says what one turn of KEDA's loop does to the size, and why.
type StepReason string

// The reasons of a Step, in the order in which KEDA asks.
const (
	// StepPaused: a pause annotation holds the size, or sets it.
	StepPaused StepReason = "paused"
	// StepActivates: active at zero, or below the minimum with an idle count.
	StepActivates StepReason = "activates"
	// StepPausedOut: it would activate, and paused-scale-out forbids it.
	StepPausedOut StepReason = "paused_scale_out"
	// StepPartialError: active, while a trigger fails: lastActiveTime stays.
	StepPartialError StepReason = "active_partial_error"
	// StepActive: active, the size is the HPA's business.
	StepActive StepReason = "active"
	// StepWritesFallback: up to 2.16 KEDA wrote fallback.replicas itself.
	StepWritesFallback StepReason = "writes_fallback"
	// StepAwaitsFallback: inactive with a failure; the size waits for the
	// fallback, which the HPA carries out.
	StepAwaitsFallback StepReason = "awaits_fallback"
	// StepTriggerError: inactive with a failure, no fallback: nothing happens.
	StepTriggerError StepReason = "trigger_error"
	// StepPausedIn: it would deactivate, and paused-scale-in forbids it.
	StepPausedIn StepReason = "paused_scale_in"
	// StepCoolsDown: it deactivates at the end of the cooldown.
	StepCoolsDown StepReason = "cools_down"
	// StepDeactivates: inactive for longer than the cooldown: to idle or zero.
	StepDeactivates StepReason = "deactivates"
	// StepRaises: inactive below the minimum: to the minimum.
	StepRaises StepReason = "raises_to_minimum"
	// StepRests: inactive, and there is nothing to do.
	StepRests StepReason = "rests"
)

// The reasons of the ScaledObject's Active condition.
const (
	ConditionActive    = "ScalerActive"
	ConditionNotActive = "ScalerNotActive"
	ConditionCooldown  = "ScalerCooldown"
)

// Step is one turn of KEDA's loop, which runs every pollingInterval.
type Step struct {
	Reason StepReason
	// Active includes the force-activation annotation.
	Active bool
	// Forced says that the annotation makes it active.
	Forced bool
	// From and To are the size before and after.
	From, To int32
	// Refreshes says that lastActiveTime becomes now.
	Refreshes bool
	// CooldownEnds is the moment after which an inactive object goes to zero or
	// to its idle count; nil where that does not depend on time.
	CooldownEnds *time.Time
	// ConditionReason is the reason of the Active condition after it, "" where
	// the condition stays as it is.
	ConditionReason string
	// ReadyStatus and ReadyReason are those of the Ready condition.
	ReadyStatus, ReadyReason string
}

// The reasons of the Ready condition that a Step may leave.
const (
	ReadyReason       = "ScaledObjectReady"
	ReadyPartialError = "PartialTriggerError"
	ReadyTriggerError = "TriggerError"
)

const (
	statusTrue    = "True"
	statusFalse   = "False"
	statusUnknown = "Unknown"
	// halfPauseMinor is the first minor version that knows paused-scale-in,
	// paused-scale-out and force-activation.
	halfPauseMinor = 18
)

// Step decides one turn of the loop at a size. Activation moves one step, to
// the minimum or to 1, however large the value; the cooldown matters on the way
// to zero or to the idle count only.
func (s ScaledObject) Step(v Version, current int32, activity LoopActivity, now time.Time) Step {
	step := Step{From: current, To: current, ReadyStatus: statusTrue, ReadyReason: ReadyReason}
	if pause := s.Pause(); pause.All {
		step.Reason = StepPaused
		if pause.Replicas != nil {
			step.To = *pause.Replicas
		}
		return step
	}
	step.Forced = v.since(halfPauseMinor, 0) && s.ForceActive()
	step.Active = activity.Active || step.Forced
	if step.Active {
		s.stepActive(v, &step, activity)
	} else {
		s.stepInactive(v, &step, activity, now)
	}
	return step
}

func (s ScaledObject) stepActive(v Version, step *Step, activity LoopActivity) {
	step.ConditionReason = ConditionActive
	switch {
	case s.Spec.IdleReplicaCount != nil && step.From < s.Min(), step.From == 0:
		step.Reason, step.To, step.Refreshes = StepActivates, max(s.Min(), 1), true
		if v.since(halfPauseMinor, 0) && s.Pause().Out {
			step.Reason, step.To, step.Refreshes = StepPausedOut, step.From, false
		}
	case activity.Failed:
		step.Reason = StepPartialError
		step.ReadyStatus, step.ReadyReason = statusUnknown, ReadyPartialError
	default:
		step.Reason, step.Refreshes = StepActive, true
	}
}

func (s ScaledObject) stepInactive(v Version, step *Step, activity LoopActivity, now time.Time) {
	step.ConditionReason, step.Reason = ConditionNotActive, StepRests
	idle, fallback := s.Spec.IdleReplicaCount, s.Spec.Fallback
	switch {
	case activity.Failed && fallback != nil && fallback.Replicas != 0 && !v.since(17, 0):
		step.Reason, step.To = StepWritesFallback, fallback.Replicas
	case activity.Failed && fallback != nil && fallback.Replicas != 0:
		step.Reason = StepAwaitsFallback
	case activity.Failed && fallback == nil:
		step.Reason = StepTriggerError
		step.ReadyStatus, step.ReadyReason = statusFalse, ReadyTriggerError
	case idle != nil && step.From > *idle, step.From > 0 && s.Min() == 0:
		s.deactivate(v, step, now)
	case idle == nil && step.From < s.Min():
		step.Reason, step.To = StepRaises, s.Min()
	}
}

// deactivate goes to the idle count or to zero once the cooldown is over.
func (s ScaledObject) deactivate(v Version, step *Step, now time.Time) {
	if v.since(halfPauseMinor, 0) && s.Pause().In {
		step.Reason = StepPausedIn
		return
	}
	ends := s.CooldownEnds()
	step.CooldownEnds = &ends
	if !ends.Before(now) {
		step.Reason, step.ConditionReason = StepCoolsDown, ConditionCooldown
		return
	}
	step.Reason, step.To = StepDeactivates, s.Min()
	if idle := s.Spec.IdleReplicaCount; idle != nil {
		step.To = *idle
	}
}

// CooldownEnds is when the cooldown ends for an object that stays inactive:
// cooldownPeriod after lastActiveTime, or initialCooldownPeriod after the
// creation of an object that never was active.
func (s ScaledObject) CooldownEnds() time.Time {
	if last := s.Status.LastActiveTime; last != nil {
		return last.Add(s.Cooldown())
	}
	if created := s.Metadata.CreationTimestamp; created != nil {
		return created.Add(s.InitialCooldown())
	}
	return time.Time{}
}

// InitialCooldown is the wait after the creation of an object that never was
// active.
func (s ScaledObject) InitialCooldown() time.Duration { return seconds(s.Spec.InitialCooldown, 0) }
