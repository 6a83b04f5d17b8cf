package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// decisionOf writes the steps down, narrowed by what the controller's
// conditions prove.
func decisionOf(d hpa.Decision, check hpa.Check, observed hpa.Observed, at moment) *record.ScalingDecision {
	up, down := d.Input.Tolerances()
	out := &record.ScalingDecision{
		Path:          string(d.Path),
		From:          d.Input.Replicas.Spec,
		Min:           d.Input.Min,
		Max:           d.Input.Max,
		Blocking:      string(check.Blocking),
		ToleranceUp:   up,
		ToleranceDown: down,
		Desired:       countRange(d.Desired),
		Exact:         d.Desired.Exact(),
		HiddenInputs:  []string{},
		Assumes:       []string{},
	}
	if b := d.Input.Behavior; b != nil {
		out.UpDisabled, out.DownDisabled = b.Up.Select == hpa.SelectDisabled, b.Down.Select == hpa.SelectDisabled
	}
	if d.Path == hpa.ByMetrics && check.Blocking != hpa.AllFailed {
		out.Raw = optionalRange(check.Raw)
	}
	if d.Stabilization == nil || check.Blocking == hpa.DownBlocked {
		return out
	}
	out.Stabilization = stabilizationOf(d, check, observed, at)
	out.RateLimit = rateLimitOf(d, check, observed)
	out.HiddenInputs = append(out.HiddenInputs, hidden(d)...)
	if out.RateLimit.Allows != nil {
		out.Assumes = append(out.Assumes, assumed(d)...)
	}
	if d.Input.Recalled != nil {
		out.Assumes = append(out.Assumes, "kube-state-metrics showed the HPA's statuses and the workload's sizes as they were: none came and went between two scrapes")
	}
	return out
}

// hidden names what keeps the model's own result from being exact.
func hidden(d hpa.Decision) []string {
	var names []string
	if d.Desired.Exact() {
		return nil
	}
	for _, p := range d.Proposals {
		switch p.Reason {
		case hpa.NotModelled, hpa.NotSeen, hpa.PodsUncertain, hpa.PodsUnknown:
			names = append(names, "samples of "+p.Metric.Name)
		case hpa.NoReplicas:
			if p.TotalLow == nil {
				names = append(names, "the value of "+p.Metric.Name)
			}
		}
	}
	if !d.Input.Replicas.Status.Exact() {
		names = append(names, "status.replicas at the last sync")
	}
	if !d.Stabilization.Known {
		names = append(names, "the controller's recent proposals")
	}
	if !d.Limit.Known || d.Input.Rescales == nil {
		names = append(names, "the HPA's own recent rescales")
	}
	return names
}

func stabilizationOf(d hpa.Decision, check hpa.Check, observed hpa.Observed, at moment) *record.StabilizationStep {
	s := d.Stabilization
	step := &record.StabilizationStep{
		Reason:            string(check.Able),
		UpWindowSeconds:   s.UpWindow.Seconds(),
		DownWindowSeconds: s.DownWindow.Seconds(),
		Result:            countRange(check.Stabilized),
	}
	if step.Reason == "" && check.Compared {
		switch able := hpa.AbleReason(observed.Able); able {
		case hpa.ReadyForNewScale, hpa.ScaleUpStabilized, hpa.ScaleDownStabilized:
			step.Reason = string(able)
		}
	}
	window := s.DownWindow
	applied := true
	switch hpa.AbleReason(step.Reason) {
	case hpa.ReadyForNewScale:
		applied = false
	case hpa.ScaleUpStabilized:
		window = s.UpWindow
	case hpa.ScaleDownStabilized:
	default:
		return step
	}
	step.Applied = &applied
	if applied && dated(observed, at) {
		released := d.Input.HeldBy(observed).Add(window).UTC().Truncate(time.Second)
		step.ReleasedBy = &released
	}
	return step
}

// dated says whether the moment tells when the last sync was. Where saved objects
// mention no time after the last rescale, they may have been read long after it,
// unless the last sync is the one that made it.
func dated(observed hpa.Observed, at moment) bool {
	switch {
	case at.time.IsZero():
		return false
	case at.source != sourceObjects, observed.LastScale == nil, at.time.After(*observed.LastScale):
		return true
	}
	return hpa.AbleReason(observed.Able) == hpa.SucceededRescale
}

func rateLimitOf(d hpa.Decision, check hpa.Check, observed hpa.Observed) *record.RateLimitStep {
	step := &record.RateLimitStep{Reason: string(d.Limit.Reason)}
	if step.Reason == "" && check.Compared {
		step.Reason = observed.Limited
	}
	if step.Reason != "" {
		applied := hpa.LimitReason(step.Reason) != hpa.DesiredWithinRange
		step.Applied = &applied
	}
	in := d.Input
	switch spec := in.Replicas.Spec; {
	case check.Raw.Low > spec, check.Stabilized.Low > spec:
		allows := hpa.Range{Low: min(max(check.Up.Low, spec), in.Max), High: min(max(check.Up.High, spec), in.Max)}
		step.Allows, step.Policy = optionalRange(allows), "doubling, or 4"
		if in.Behavior != nil {
			step.Policy = policyText("+", in.Behavior.Up)
		}
	case check.Raw.High < spec && in.Behavior != nil:
		allows := hpa.Range{Low: max(min(check.Down.Low, spec), in.Min), High: max(min(check.Down.High, spec), in.Min)}
		step.Allows, step.Policy = optionalRange(allows), policyText("-", in.Behavior.Down)
	}
	return step
}

// policyDisabled stands for rules that allow no change.
const policyDisabled = "disabled"

// policyText puts rules into words: "+100% per 30s or +4 pods per 15s, the
// larger".
func policyText(sign string, rules hpa.Rules) string {
	if rules.Select == hpa.SelectDisabled {
		return policyDisabled
	}
	var parts []string
	for _, p := range rules.Policies {
		amount := fmt.Sprintf("%d%%", p.Value)
		if p.Type == hpa.PodsPolicy {
			amount = fmt.Sprintf("%d pods", p.Value)
		}
		parts = append(parts, fmt.Sprintf("%s%s per %s", sign, amount, shortDuration(p.Period)))
	}
	text := strings.Join(parts, " or ")
	if len(parts) > 1 {
		which := "the larger"
		if rules.Select == hpa.SelectMin {
			which = "the smaller"
		}
		text += ", " + which
	}
	return text
}

// shortDuration is a duration in whole seconds below two minutes, such as 90s.
func shortDuration(d time.Duration) string {
	if d < 2*time.Minute || d%time.Minute != 0 {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return fmt.Sprintf("%dm", int(d.Minutes()))
}

func checkOf(check hpa.Check, observed hpa.Observed) *record.ControllerCheck {
	out := &record.ControllerCheck{
		Compared:        check.Compared,
		Agrees:          check.Agrees(),
		DesiredReplicas: observed.Desired,
		AbleToScale:     observed.Able,
		ScalingActive:   observed.Active,
		ScalingLimited:  observed.Limited,
		Disagreements:   []record.ControllerDisagreement{},
	}
	for _, d := range check.Disagreements {
		out.Disagreements = append(out.Disagreements, record.ControllerDisagreement{What: d.What, Model: d.Model, Controller: d.Controller})
	}
	return out
}
