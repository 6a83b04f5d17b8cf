package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderWhatIf puts today and the change side by side.
func renderWhatIf(text *strings.Builder, c record.ScalingChain, width int) error {
	if err := renderNow(text, c, width); err != nil || c.WhatIf == nil {
		return err
	}
	what := c.WhatIf
	var changes []string
	for _, change := range what.Changes {
		changes = append(changes, failure.Clean(change))
	}
	fmt.Fprintf(text, "\n%s %s\n", term.Bold("WHAT IF"), strings.Join(changes, ", "))
	return sideBySide(text, c, what, width, "TODAY", "WITH THE CHANGE")
}

func sideBySide(text *strings.Builder, c record.ScalingChain, what *record.ScalingWhatIf, width int, left, right string) error {
	table := output.Table{Header: []string{"", left, right}}
	row := func(name, today, changed string) {
		if today != changed {
			changed = term.Bold(changed)
		}
		table.Rows = append(table.Rows, []string{name, today, changed})
	}
	edge := func(name, today, changed string) {
		if today != "-" || changed != "-" {
			row(name, today, changed)
		}
	}
	for i, today := range c.Triggers {
		changed := what.Triggers[i]
		row(output.Cell(triggerName(today)), asksText(today), asksText(changed))
		edge("  adds a replica", addsText(today), addsText(changed))
		edge("  removes one", removesText(today), removesText(changed))
	}
	if today, changed := boundsText(c.Replicas), boundsText(what.Replicas); today != changed {
		row("range", today, changed)
	}
	row("size", countText(c.Replicas.Spec), countText(what.Replicas.Spec))
	if what.KEDA != nil && (loopMatters(c.Replicas) || loopMatters(what.Replicas)) {
		row("KEDA's turn", turnText(c.KEDA, c.Replicas), turnText(what.KEDA, what.Replicas))
	}
	row("next sync", syncText(c.Decision, c.Check), syncText(what.Decision, nil))
	row("in the end", settledText(what.SettlesToday, c.KEDA), settledText(what.Settles, what.KEDA))
	if err := writeFitted(text, table, "  ", width); err != nil {
		return err
	}
	text.WriteString("  In the end: if the values stay as they are and new pods are Ready at once.\n")
	if what.Settles != nil && what.Settles.Estimate {
		text.WriteString("  About: what the pods use is taken to stay the same in all, spread evenly over them.\n")
	}
	for _, note := range what.Notes {
		fmt.Fprintf(text, "  Note: %s\n", failure.Clean(note))
	}
	return nil
}

// loopMatters says whether KEDA's own loop has a part in the size.
func loopMatters(counts record.ReplicaCounts) bool {
	return counts.Idle != nil || counts.Min != nil && (*counts.Min == 0 || counts.Spec != nil && *counts.Spec < *counts.Min)
}

// turnText is what the next turn of KEDA's loop does, in a few words.
func turnText(k *record.KEDALoop, counts record.ReplicaCounts) string {
	if k == nil || k.Next == nil || counts.Spec == nil {
		return "unknown"
	}
	within := fmt.Sprintf(" within %gs", k.PollingSeconds)
	switch keda.StepReason(k.Next.Reason) {
	case keda.StepActivates:
		return fmt.Sprintf("active: %d -> %d%s", *counts.Spec, k.Next.To, within)
	case keda.StepRaises:
		return fmt.Sprintf("to the minimum: %d -> %d%s", *counts.Spec, k.Next.To, within)
	case keda.StepCoolsDown:
		return fmt.Sprintf("inactive: %d -> %d after the cooldown of %gs", *counts.Spec, floorOf(counts), k.Cooldown.Seconds)
	case keda.StepDeactivates:
		return fmt.Sprintf("inactive: %d -> %d%s", *counts.Spec, k.Next.To, within)
	case keda.StepActive, keda.StepPartialError:
		return "active: leaves the size to the HPA"
	case keda.StepRests:
		return "inactive: leaves the size"
	case keda.StepPaused, keda.StepPausedIn, keda.StepPausedOut:
		return "paused: leaves the size"
	}
	return "a trigger fails: leaves the size"
}

func asksText(t record.ScalingTrigger) string {
	switch hpa.ProposalReason(t.Reason) {
	case hpa.MetricFailed:
		return "failed"
	case hpa.NotSeen, hpa.NotModelled:
		return "unknown"
	case hpa.NoReplicas:
		if t.ValueLow == nil {
			return "unknown"
		}
	}
	return fmt.Sprintf("%s of %s: asks for %s", valueText(t), targetText(t), rangeText(t.Proposes))
}

func addsText(t record.ScalingTrigger) string {
	if t.AddsAt == nil {
		return "-"
	}
	return "above " + number(*t.AddsAt-0.001)
}

func removesText(t record.ScalingTrigger) string {
	if t.RemovesAt == nil {
		return "-"
	}
	return "from " + number(*t.RemovesAt) + " down"
}

func boundsText(counts record.ReplicaCounts) string {
	if counts.Min == nil || counts.Max == nil {
		return "?"
	}
	return fmt.Sprintf("%d-%d", *counts.Min, *counts.Max)
}

func countText(n *int32) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func syncText(d *record.ScalingDecision, check *record.ControllerCheck) string {
	if d == nil {
		return "no HPA"
	}
	if hpa.Path(d.Path) == hpa.Disabled {
		return "none: an HPA does not leave 0"
	}
	// desiredReplicas is then left from an earlier sync, if there was one.
	if unscalable(check) {
		return fmt.Sprintf("%d (held: FailedGetScale)", d.From)
	}
	switch hpa.Blocking(d.Blocking) {
	case hpa.AllFailed, hpa.DownBlocked:
		return fmt.Sprintf("%d (held: a metric failed)", d.From)
	}
	if check != nil && check.Compared && check.Agrees {
		return fmt.Sprint(check.DesiredReplicas)
	}
	return rangeText(&d.Desired)
}

func settledText(s *record.SettledSize, loop *record.KEDALoop) string {
	if s == nil {
		return "unknown"
	}
	line := rangeText(&s.Replicas)
	if s.Estimate {
		line = "about " + line
	}
	switch {
	case s.Unsettled:
		line = "no end in " + shortDuration(lookAhead) + ", then " + line
	case len(s.Path) > 1 && s.AfterSeconds == 0 && turnsFirst(loop):
		line += " at the sync after KEDA's turn"
	case len(s.Path) > 0:
		line += afterText(time.Duration(s.AfterSeconds) * time.Second)
	}
	if len(s.Path) > 1 {
		var sizes []string
		for _, at := range s.Path {
			sizes = append(sizes, fmt.Sprint(at.Replicas))
		}
		if len(sizes) > 5 {
			sizes = append(append(sizes[:3:3], "..."), sizes[len(sizes)-1])
		}
		line += ": " + strings.Join(sizes, ", ")
	}
	return line
}

// turnsFirst says whether KEDA changes the size before the HPA can.
func turnsFirst(loop *record.KEDALoop) bool {
	if loop == nil || loop.Next == nil {
		return false
	}
	reason := keda.StepReason(loop.Next.Reason)
	return reason == keda.StepActivates || reason == keda.StepRaises
}

func afterText(d time.Duration) string {
	if d == 0 {
		return " at the next sync"
	}
	return " after " + spanText(d)
}

// spanText is a duration such as 45s, 5m or 1m15s.
func spanText(d time.Duration) string {
	text := d.String()
	if d != 0 && d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
