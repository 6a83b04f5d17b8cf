package rollout

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// showPlan prints what would be done.
func (o *options) showPlan(plan record.RolloutPlan, changes []change) error {
	return o.out.Print(o.streams.Out, plan, func(w io.Writer) error {
		if len(changes) == 0 {
			_, err := fmt.Fprintf(w, "%s is as planned: nothing would change (dry run)\n", plan.Name)
			return err
		}
		for _, change := range changes {
			if _, err := io.WriteString(w, output.ColorDiff(change.diff)); err != nil {
				return err
			}
		}
		return nil
	})
}

// show prints the cold start that a Job measured.
func (o *options) show(event record.Event) error {
	var start record.ColdStart
	if err := record.Decode(event.Result, record.KindColdStart, &start); err != nil {
		return failure.Wrap(err, "read the rollout's result")
	}
	return o.out.Print(o.streams.Out, start, func(w io.Writer) error { return render(w, start) })
}

const barWidth = 40

// render draws each replica's start as one bar, phase by phase.
func render(w io.Writer, start record.ColdStart) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s serves %s at revision %s as %q\n", term.Bold(start.Name), output.Cell(start.ModelID), output.Cell(start.Revision), output.Cell(start.ServedModel))
	if len(start.Replicas) == 0 {
		text.WriteString("no replica was started, so no cold start was measured\n")
	}
	for _, replica := range start.Replicas {
		fmt.Fprintf(&text, "\ncold start of %s on %s: %s\n", output.Cell(replica.Pod), output.Cell(replica.Node), term.Bold(fmt.Sprintf("%.0f s", replica.TotalSeconds)))
		phases := []struct {
			name    string
			mark    string
			seconds *float64
		}{
			{"queued", ".", replica.QueuedSeconds},
			{"prepared", "-", replica.PreparedSeconds},
			{"loaded", "=", replica.LoadedSeconds},
			{"first token", ">", replica.FirstTokenSeconds},
		}
		var bar strings.Builder
		for _, phase := range phases {
			if phase.seconds != nil && replica.TotalSeconds > 0 {
				bar.WriteString(strings.Repeat(phase.mark, int(*phase.seconds/replica.TotalSeconds*barWidth+0.5)))
			}
		}
		fmt.Fprintf(&text, "  [%s]\n", bar.String())
		var parts []string
		for _, phase := range phases {
			if phase.seconds != nil {
				parts = append(parts, fmt.Sprintf("%s %s %.1f s", phase.mark, phase.name, *phase.seconds))
			}
		}
		fmt.Fprintf(&text, "  %s\n", strings.Join(parts, "   "))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
