package hpa

import (
	"math"
	"time"
)

// LimitReason is a reason of the condition ScalingLimited.
type LimitReason string

const (
	DesiredWithinRange LimitReason = "DesiredWithinRange"
	TooManyReplicas    LimitReason = "TooManyReplicas"
	TooFewReplicas     LimitReason = "TooFewReplicas"
	ScaleUpLimit       LimitReason = "ScaleUpLimit"
	ScaleDownLimit     LimitReason = "ScaleDownLimit"
)

// Limit is the step that applies the policies, the minimum and the maximum.
type Limit struct {
	// Up is the largest size that the policies of scaleUp allow, Down the
	// smallest that those of scaleDown allow.
	Up, Down Range
	// Count is the size after this step.
	Count Range
	// Known is false where the HPA's own recent rescales would be needed.
	Known bool
	// Reason is "" where bounds leave it open.
	Reason LimitReason
}

func (in Input) limit(stabilized Range) Limit {
	l := Limit{Known: true}
	step := in.limitPlain
	if in.Behavior == nil {
		l.Up, l.Down = Exactly(in.plainUpLimit()), Exactly(math.MinInt32)
	} else {
		l.Up, l.Down = in.policyLimits()
		step = in.limitByPolicy
	}
	low, lowReason := step(stabilized.Low, l.Up.Low, l.Down.Low)
	high, highReason := step(stabilized.High, l.Up.High, l.Down.High)
	l.Count = Range{low, high}
	if stabilized.Exact() && l.Count.Exact() && lowReason == highReason {
		l.Reason = lowReason
	}
	spec := in.Replicas.Spec
	l.Known = (stabilized.High <= spec || l.Up.Exact()) && (stabilized.Low >= spec || l.Down.Exact())
	return l
}

// plainUpLimit bounds a step up without a behavior: twice the size, or four.
func (in Input) plainUpLimit() int32 {
	return sizeOf(math.Max(2*float64(in.Replicas.Spec), 4))
}

func (in Input) limitPlain(want, up, _ int32) (int32, LimitReason) {
	top, reason := in.Max, TooManyReplicas
	if in.Max > up {
		top, reason = up, ScaleUpLimit
	}
	switch {
	case want < in.Min:
		return in.Min, TooFewReplicas
	case want > top:
		return top, reason
	}
	return want, DesiredWithinRange
}

func (in Input) limitByPolicy(want, up, down int32) (int32, LimitReason) {
	switch spec := in.Replicas.Spec; {
	case want > spec:
		top, reason := in.Max, TooManyReplicas
		if up = max(up, spec); in.Max > up {
			top, reason = up, ScaleUpLimit
		}
		if want > top {
			return top, reason
		}
	case want < spec:
		bottom, reason := in.Min, TooFewReplicas
		if down = min(down, spec); in.Min < down {
			bottom, reason = down, ScaleDownLimit
		}
		if want < bottom {
			return bottom, reason
		}
	}
	return want, DesiredWithinRange
}

// policyLimits returns the sizes that the policies allow from here.
func (in Input) policyLimits() (up, down Range) {
	spec := in.Replicas.Spec
	up, down = Exactly(spec), Exactly(spec)
	if rules := in.Behavior.Up; rules.Select != SelectDisabled {
		up = in.overPolicies(rules, func(start int32, p Policy) int32 {
			if p.Type == PodsPolicy {
				return clamp(int64(start) + int64(p.Value))
			}
			return sizeOf(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
		}, rules.Select == SelectMin)
	}
	if rules := in.Behavior.Down; rules.Select != SelectDisabled {
		down = in.overPolicies(rules, func(start int32, p Policy) int32 {
			if p.Type == PodsPolicy {
				return clamp(int64(start) - int64(p.Value))
			}
			return sizeOf(math.Trunc(float64(start) * (1 - float64(p.Value)/100)))
		}, rules.Select != SelectMin)
	}
	return up, down
}

// overPolicies applies allow to each policy's start and takes the smallest or
// the largest outcome. The start undoes the HPA's own changes of the period, in
// both directions; it may be a size that never existed (kubernetes#108354).
func (in Input) overPolicies(rules Rules, allow func(int32, Policy) int32, smallest bool) Range {
	var outcome Range
	for i, policy := range rules.Policies {
		// The start may even be negative.
		start := Range{math.MinInt32, math.MaxInt32}
		if in.Rescales != nil {
			up, down := in.within(in.Rescales.Up, policy.Period), in.within(in.Rescales.Down, policy.Period)
			start = Exactly(in.Replicas.Spec).minus(up).plus(down)
		}
		// Above 100 % a policy down allows the less the larger the start is.
		one := span(allow(start.Low, policy), allow(start.High, policy))
		switch {
		case i == 0:
			outcome = one
		case smallest:
			outcome = Range{min(outcome.Low, one.Low), min(outcome.High, one.High)}
		default:
			outcome = Range{max(outcome.Low, one.Low), max(outcome.High, one.High)}
		}
	}
	return outcome
}

// within sums the changes of a period. One as old as the period is out of it;
// one of which that cannot be said counts as none to all of it.
func (in Input) within(rescales []Rescale, period time.Duration) (total Range) {
	rounding := time.Duration(0)
	if in.Slack > 0 {
		rounding = time.Second
	}
	for _, rescale := range rescales {
		age := in.Now.Sub(rescale.Time)
		switch {
		case age+rounding < period:
			total = total.plus(rescale.Delta)
		case age-in.Slack-rounding < period:
			total = total.plus(Range{0, rescale.Delta.High})
		}
	}
	return total
}

// LongestPeriod is the longest policy period of the behavior: older rescales
// have no effect. It is 0 without one.
func (in Input) LongestPeriod() time.Duration {
	if in.Behavior == nil {
		return 0
	}
	return max(in.Behavior.Up.longestPeriod(), in.Behavior.Down.longestPeriod())
}
