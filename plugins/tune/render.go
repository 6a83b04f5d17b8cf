package tune

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// render prints what changes and on what evidence, what stays and why, and the
// difference on the object.
func render(w io.Writer, plan record.TuningPlan, diff string, applied bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s, measured at %s with %s (run %s)\n\n", plan.Owner.Kind, term.Bold(output.Cell(plan.Owner.Name)), plan.Shape, output.Cell(plan.Model), output.Cell(strings.Join(plan.Runs, ", ")))
	table := output.Table{Header: []string{"TRIGGER", "THRESHOLD", "NEW", "ACTS ABOVE", "NEW", "WHY"}, Right: []int{1, 2, 3, 4}}
	for _, change := range plan.Changes {
		before := "-"
		if change.ActsAboveBefore != nil {
			before = fmt.Sprintf("%.3g", *change.ActsAboveBefore)
		}
		why := change.Why
		if change.MetricType != change.PreviousMetricType {
			why += "; metricType " + change.PreviousMetricType + " becomes " + change.MetricType
		}
		table.Rows = append(table.Rows, []string{label(change.Index, change.Trigger), output.Cell(change.From), term.Bold(change.To), before, fmt.Sprintf("%.3g", change.ActsAboveAfter), output.Cell(why)})
	}
	for _, kept := range plan.Kept {
		table.Rows = append(table.Rows, []string{label(kept.Index, kept.Trigger), "kept", "", "", "", output.Cell(kept.Why)})
	}
	if err := table.Write(&text, ""); err != nil {
		return err
	}
	if diff != "" {
		text.WriteString("\n" + output.ColorDiff(diff))
	}
	switch {
	case len(plan.Changes) == 0:
		text.WriteString("\nnothing to change\n")
	case applied:
		fmt.Fprintf(&text, "\n%s. A later `kubectl apply` of the old manifest would take it back: commit the difference.\nTo take it back yourself:\n  %s\n", term.Good("changed"), patchCommand(plan))
	default:
		text.WriteString("\nnothing was changed: add --apply\n")
		if plan.Managed != "" {
			fmt.Fprintf(&text, "%s keeps this object: commit the difference there\n", output.Cell(plan.Managed))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// patchCommand is the command that takes the plan back, for a POSIX shell. What
// is not printable is escaped: the patch quotes the object.
func patchCommand(plan record.TuningPlan) string {
	data, err := json.Marshal(plan.Undo)
	if err != nil {
		return "kubectl inference tune --undo PLAN --apply"
	}
	var patch strings.Builder
	for _, r := range string(data) {
		switch {
		case r == '\'':
			patch.WriteString(`'\''`)
		case unicode.IsPrint(r):
			patch.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&patch, `\u%04x`, r)
		default:
			// No form of JSON, but kubectl reads YAML.
			fmt.Fprintf(&patch, `\U%08x`, r)
		}
	}
	group, _, _ := strings.Cut(plan.Owner.APIVersion, "/")
	return fmt.Sprintf("kubectl patch %s.%s %s -n %s --type=json -p '%s'", strings.ToLower(plan.Owner.Kind), group, plan.Owner.Name, plan.Owner.Namespace, patch.String())
}

func label(index int, trigger string) string {
	return fmt.Sprintf("s%d %s", index, output.Cell(trigger))
}
