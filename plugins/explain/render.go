package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// render writes the explanation for people. Every line is derived from the
// document. width is that of the terminal, 0 for lines of any length.
func render(w io.Writer, e record.ScalingExplanation, width int) error {
	e, err := cleaned(e)
	if err != nil {
		return err
	}
	var text strings.Builder
	for i, chain := range e.Chains {
		if i > 0 {
			text.WriteString("\n")
		}
		if err := renderChain(&text, e, chain, width); err != nil {
			return err
		}
	}
	if len(e.Unread) > 0 {
		text.WriteString("\nNOT READ\n")
		for _, unread := range e.Unread {
			fmt.Fprintf(&text, "  %s\n", failure.Clean(unread.Message))
		}
	}
	_, err = io.WriteString(w, wrap(text.String(), width))
	return err
}

func renderChain(text *strings.Builder, e record.ScalingExplanation, c record.ScalingChain, width int) error {
	var links []string
	for _, link := range c.Links {
		links = append(links, kindText(link.Kind)+" "+failure.Clean(link.Name))
	}
	if e.Namespace != c.Namespace {
		links[0] = c.Namespace + ": " + links[0]
	}
	if c.Role != "" {
		fmt.Fprintf(text, "%s\n", term.Bold(strings.ToUpper(c.Role)))
	}
	fmt.Fprintln(text, strings.Join(links, " > "))
	fmt.Fprintln(text, sizeLine(e, c))
	renderPast(text, e, c)
	renderPods(text, c)
	if err := renderTriggers(text, c, width); err != nil {
		return err
	}
	renderDecision(text, c)
	renderKEDA(text, c)
	if err := renderWhatIf(text, c, width); err != nil {
		return err
	}
	if err := renderHistory(text, e, c, width); err != nil {
		return err
	}
	renderWarnings(text, c.Warnings)
	return nil
}

func sizeLine(e record.ScalingExplanation, c record.ScalingChain) string {
	line := "size unknown"
	if c.Replicas.Spec != nil {
		line = plural(*c.Replicas.Spec, "replica", "replicas")
	}
	if c.Replicas.Min != nil && c.Replicas.Max != nil {
		low, high, wanted := rangeNow(c)
		line += fmt.Sprintf(" (range %d-%d", low, high)
		if wanted != "" {
			line += " by the HPA, " + wanted + " by the ScaledObject"
		}
		if idle := c.Replicas.Idle; idle != nil {
			line += fmt.Sprintf(", idle %d", *idle)
		}
		line += ")"
	}
	if status := c.Replicas.Status; status != nil && *status != *c.Replicas.Spec {
		line += fmt.Sprintf(", %d exist", *status)
	}
	if ready := c.Replicas.Ready; ready != nil && c.Replicas.Spec != nil && *ready != *c.Replicas.Spec {
		line += fmt.Sprintf(", %d ready", *ready)
	}
	return line + changeText(e, c.LastChange)
}

// rangeNow are the bounds that the HPA keeps to, and those that the ScaledObject
// wants where KEDA has not written these; "" where it has. The HPA of a
// ScaledObject with the minimum 0 has the minimum 1: KEDA takes the last step.
func rangeNow(c record.ScalingChain) (low, high int32, wanted string) {
	low, high = *c.Replicas.Min, *c.Replicas.Max
	d := c.Decision
	if d == nil || (c.KEDA != nil && max(low, 1) == d.Min || low == d.Min) && high == d.Max {
		return low, high, ""
	}
	return d.Min, d.Max, boundsText(c.Replicas)
}

// changeText is who changed the size last, and when.
func changeText(e record.ScalingExplanation, change *record.ReplicaChange) string {
	if change == nil {
		return ""
	}
	text := ", last changed"
	if change.Time != nil {
		moment := e.AsOf.Time
		if e.AsOf.Source == sourceObjects && moment != nil && !moment.After(*change.Time) {
			// Nothing in the objects is newer: when they were read is not known.
			moment = nil
		}
		text += " " + agoText(moment, *change.Time)
	}
	if change.By == "" {
		return text + "; by whom is unknown: " + change.Reason
	}
	return text + " by " + actor(change.By)
}

func renderTriggers(text *strings.Builder, c record.ScalingChain, width int) error {
	if len(c.Triggers) == 0 {
		return nil
	}
	table := output.Table{Header: []string{"TRIGGER", "VALUE", "TARGET", "PROPOSES", "", "WHY"}}
	for _, t := range c.Triggers {
		wins := ""
		if t.Winner {
			wins = term.Bold("wins")
		}
		table.Rows = append(table.Rows, []string{
			output.Cell(triggerName(t)), valueText(t), targetText(t), rangeText(t.Proposes), wins,
			output.Cell(whyText(t, c)),
		})
	}
	text.WriteString("\n")
	switch {
	case !tooNarrow(table, width):
		hangLast(&table, width)
		return table.Write(text, "")
	case widthBefore(table) <= width+columnGap:
		return renderNarrow(text, table)
	}
	return writeStacked(text, table, "", width)
}

// renderNarrow puts the reason of each trigger on lines of its own.
func renderNarrow(text *strings.Builder, table output.Table) error {
	last := len(table.Header) - 1
	var reasons []string
	for _, row := range table.Rows {
		reasons = append(reasons, row[last])
		row[last] = ""
	}
	table.Header = append(table.Header[:last:last], "")
	var lines strings.Builder
	if err := table.Write(&lines, ""); err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n") {
		text.WriteString(line + "\n")
		if i > 0 {
			text.WriteString("  " + reasons[i-1] + "\n")
		}
	}
	return nil
}

func renderWarnings(text *strings.Builder, findings []record.Finding) {
	if len(findings) == 0 {
		return
	}
	text.WriteString("\nWARNINGS\n")
	for i, finding := range findings {
		if i > 0 && folds(findings[i-1], finding) {
			continue
		}
		mark := term.Caution(finding.Severity)
		switch finding.Severity {
		case record.SeverityError:
			mark = term.Bad(finding.Severity)
		case record.SeverityInfo:
			mark = term.Faint(finding.Severity)
		}
		fmt.Fprintf(text, "  %s %s: %s\n", mark, finding.ID, failure.Clean(finding.Message))
		if finding.Fix != "" {
			fmt.Fprintf(text, "     fix: %s\n", failure.Clean(finding.Fix))
		}
		same := 0
		for i+same+1 < len(findings) && folds(findings[i+same], findings[i+same+1]) {
			same++
		}
		if same > 0 {
			fmt.Fprintf(text, "     the same for %s\n", plural(int32(same), "more trigger", "more triggers"))
		}
	}
}

// folds says that a finding is the one before it again, for another trigger.
// Those of a severity that wants action are all written out.
func folds(before, finding record.Finding) bool {
	return finding.Severity == record.SeverityInfo && before.Severity == record.SeverityInfo && finding.ID == before.ID
}
