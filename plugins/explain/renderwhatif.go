package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderWhatIf puts today and the change side by side.
func renderWhatIf(text *strings.Builder, c record.ScalingChain) error {
	if err := renderNow(text, c); err != nil || c.WhatIf == nil {
		return err
	}
	what := c.WhatIf
	var changes []string
	for _, change := range what.Changes {
		changes = append(changes, failure.Clean(change))
	}
	fmt.Fprintf(text, "\n%s %s\n", term.Bold("WHAT IF"), strings.Join(changes, ", "))
	return sideBySide(text, c, what, "TODAY", "WITH THE CHANGE")
}

// renderNow puts the controller's last sync and fresh values side by side.
func renderNow(text *strings.Builder, c record.ScalingChain) error {
	if c.Now == nil {
		return nil
	}
	fmt.Fprintf(text, "\n%s read at %s from the triggers' own servers\n", term.Bold("NOW"), clockText(c.Now.ReadAt))
	for _, value := range c.Now.Values {
		name := fmt.Sprintf("s%d %s", value.Index, failure.Clean(value.Label))
		if value.Value == nil {
			fmt.Fprintf(text, "  %s is not fresh: %s\n", name, failure.Clean(value.Error))
		} else {
			fmt.Fprintf(text, "  %s is fresh: %s\n", name, number(*value.Value))
		}
	}
	if c.Now.Decision == nil {
		return nil
	}
	return sideBySide(text, c, c.Now.Decision, "LAST SYNC", "NOW")
}

func sideBySide(text *strings.Builder, c record.ScalingChain, what *record.ScalingWhatIf, left, right string) error {
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
	row("next sync", syncText(c, c.Decision, c.Check), syncText(c, what.Decision, nil))
	row("in the end", settledText(what.SettlesToday), settledText(what.Settles))
	if err := table.Write(text, "  "); err != nil {
		return err
	}
	text.WriteString("  In the end: if the values stay as they are and new pods are Ready at once.\n")
	return nil
}

func asksText(t record.ScalingTrigger) string {
	switch hpa.ProposalReason(t.Reason) {
	case hpa.MetricFailed:
		return "failed"
	case hpa.NotSeen, hpa.NotModelled:
		return "unknown"
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

func syncText(c record.ScalingChain, d *record.ScalingDecision, check *record.ControllerCheck) string {
	if check != nil && check.Compared && check.Agrees {
		return fmt.Sprint(check.DesiredReplicas)
	}
	switch hpa.Blocking(d.Blocking) {
	case hpa.AllFailed, hpa.DownBlocked:
		return fmt.Sprintf("%d (held: a metric failed)", d.From)
	}
	return rangeText(&d.Desired)
}

func settledText(s *record.SettledSize) string {
	if s == nil {
		return "unknown"
	}
	line := rangeText(&s.Replicas)
	switch {
	case s.Unsettled:
		line = "no end in " + shortDuration(lookAhead) + ", then " + line
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

func afterText(d time.Duration) string {
	if d == 0 {
		return " at the next sync"
	}
	return " after " + spanText(d)
}

// spanText is a duration such as 45s, 5m or 1m15s.
func spanText(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
