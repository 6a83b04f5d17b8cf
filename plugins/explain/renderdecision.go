package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderDecision writes the DECISION line and what led to it.
func renderDecision(text *strings.Builder, c record.ScalingChain) {
	head, details := headline(c)
	fmt.Fprintf(text, "\n%s %s\n", term.Bold("DECISION"), head)
	for _, line := range details {
		fmt.Fprintf(text, "  %s\n", line)
	}
	if c.Decision == nil || c.Check == nil {
		return
	}
	for _, line := range checkLines(c) {
		fmt.Fprintf(text, "  %s\n", line)
	}
}

func headline(c record.ScalingChain) (head string, details []string) {
	switch c.State {
	case record.ChainPaused:
		return "none: the ScaledObject is paused", []string{pausedText(c)}
	case record.ChainStatic:
		return "none: nothing scales this workload", []string{"no HPA and no ScaledObject has it as its target; its size is what somebody wrote"}
	case record.ChainNew:
		return "none: KEDA has not looked at the ScaledObject", []string{"it has no status: it is a manifest, or new"}
	case record.ChainNoHPA:
		return "none: the ScaledObject has no HPA", []string{"KEDA could not make one; its conditions and events say why"}
	case record.ChainNotSynced:
		return "none yet: the HPA controller has not looked at this HPA", nil
	}
	d := c.Decision
	if unscalable(c.Check) {
		return fmt.Sprintf("held at %d: the HPA could not read the size (FailedGetScale)", d.From),
			[]string{"the values are those of an earlier sync: this one read none"}
	}
	switch hpa.Path(d.Path) {
	case hpa.Disabled:
		return "none: the size is 0, and an HPA does not leave it",
			[]string{"KEDA's own loop adds the first replica when a trigger is above its activation threshold"}
	case hpa.AboveMax:
		return fmt.Sprintf("%d -> %s at once: the size is above the maximum", d.From, rangeText(&d.Desired)), nil
	case hpa.BelowMin:
		return fmt.Sprintf("%d -> %s at once: the size is below the minimum", d.From, rangeText(&d.Desired)), nil
	}
	if c.Check != nil {
		switch hpa.ActiveReason(c.Check.ScalingActive) {
		case hpa.AmbiguousSelector:
			return fmt.Sprintf("held at %d: its pods belong to more than one HPA, and each of these stops", d.From), nil
		case hpa.InvalidSelector:
			return fmt.Sprintf("held at %d: the workload's scale has no selector that the HPA can read", d.From), nil
		}
	}
	switch hpa.Blocking(d.Blocking) {
	case hpa.AllFailed:
		return fmt.Sprintf("held at %d: no metric could be read", d.From), nil
	case hpa.DownBlocked:
		return fmt.Sprintf("held at %d: %s, so no replica is removed", d.From, failedText(c.Triggers)),
			[]string{fmt.Sprintf("the other metrics ask for %s", rangeText(d.Raw))}
	}
	return byMetrics(c)
}

// pausedText says where the size stays: a count to pause at is written first.
func pausedText(c record.ScalingChain) string {
	const until = "until the pause annotation is removed"
	if k := c.KEDA; k != nil && k.Pause.Replicas != nil && c.Replicas.Spec != nil && *k.Pause.Replicas != *c.Replicas.Spec {
		return fmt.Sprintf("KEDA removes the HPA and sets the size to %d, where it stays %s", *k.Pause.Replicas, until)
	}
	return "KEDA has removed the HPA; the size stays " + until
}

// unscalable says that the last sync ended before any metric was looked at.
func unscalable(check *record.ControllerCheck) bool {
	return check != nil && !check.Compared && check.AbleToScale == string(hpa.FailedGetScale)
}

func failedText(triggers []record.ScalingTrigger) string {
	var names []string
	for _, t := range triggers {
		if t.Reason == string(hpa.MetricFailed) {
			names = append(names, triggerName(t))
		}
	}
	return strings.Join(names, " and ") + " failed"
}

// heldText is the proposal that holds the size. A size that is held where it is
// gives a bound only: the proposal may lie beyond it.
func heldText(d *record.ScalingDecision, beyond string) string {
	held, known := exact(&d.Stabilization.Result)
	if known && held == d.From {
		return fmt.Sprintf("%d %s", held, beyond)
	}
	return rangeText(&d.Stabilization.Result)
}

func checkLines(c record.ScalingChain) []string {
	check := c.Check
	switch {
	case !check.Compared:
		return []string{"not compared with the controller: its last sync left no size (" + nonEmpty(check.AbleToScale, check.ScalingActive) + ")"}
	case !check.Agrees:
		lines := []string{}
		for _, d := range check.Disagreements {
			lines = append(lines, term.Bad("disagrees")+fmt.Sprintf(" with the controller on %s: %s here, %s there", d.What, d.Model, d.Controller))
		}
		return lines
	case hpa.Blocking(c.Decision.Blocking) == hpa.AllFailed, hpa.Blocking(c.Decision.Blocking) == hpa.DownBlocked:
		return []string{fmt.Sprintf("%s with the controller: %s", term.Good("agrees"), check.ScalingActive)}
	}
	reasons := check.AbleToScale
	if check.ScalingLimited != "" && check.ScalingLimited != string(hpa.DesiredWithinRange) {
		reasons += ", " + check.ScalingLimited
	}
	line := strings.TrimSuffix(fmt.Sprintf("%s with the controller: desiredReplicas %d, %s", term.Good("agrees"), check.DesiredReplicas, reasons), ", ")
	if !c.Decision.Exact {
		line += fmt.Sprintf(" (the model alone: %s, for want of %s)", rangeText(&c.Decision.Desired), strings.Join(c.Decision.HiddenInputs, " and "))
	}
	return []string{line}
}

func nonEmpty(texts ...string) string {
	var given []string
	for _, text := range texts {
		if text != "" {
			given = append(given, text)
		}
	}
	if len(given) == 0 {
		return "no conditions"
	}
	return strings.Join(given, ", ")
}
