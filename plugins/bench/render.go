package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

// unknown stands where a number is not known.
const unknown = "-"

func renderPlan(w io.Writer, plan record.BenchPlan) error {
	var text strings.Builder
	fmt.Fprintf(&text, "run %s: %s, %s, about %s (dry run)\n", plan.Run, plan.Target.URL, plan.Target.API,
		time.Duration(plan.TotalSeconds()*float64(time.Second)).Round(time.Second))
	if p := plan.Profile; p != nil && p.Hypothesis != "" {
		fmt.Fprintf(&text, "%s: %s\n", output.Cell(p.Name), output.Cell(p.Hypothesis))
	}
	text.WriteString("\n")
	table := output.Table{Header: []string{"CASE", "SHAPE", "LOAD", "SECONDS", "REQUESTS"}, Right: []int{1, 2, 3, 4}}
	if k := plan.FindKnee; k != nil {
		table.Rows = append(table.Rows, []string{"find-knee", k.Case.Shape(), "adaptive", fmt.Sprintf("<= %.4g", k.BudgetSeconds), unknown})
	}
	closed := false
	for _, c := range plan.Cases {
		table.Rows = append(table.Rows, []string{c.Name, c.Shape(), describe(c), fmt.Sprintf("%.4g", plan.Warmup(c)+plan.Seconds(c)), requests(plan, c)})
		closed = closed || !c.Open() && c.Requests == 0
	}
	if err := table.Write(&text, ""); err != nil {
		return err
	}
	if closed {
		text.WriteString("\na closed loop sends as many requests as the server answers in its time: LOAD x SECONDS / seconds of one request\n")
	}
	if plan.Prometheus == nil {
		text.WriteString("\nno Prometheus is known: the server's own series (queue, KV cache) will be missing, and no threshold can be derived\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// requests says how many requests a case sends, as far as a plan knows.
func requests(plan record.BenchPlan, c record.BenchCase) string {
	switch {
	case c.Open():
		return fmt.Sprintf("about %.0f", c.Arrival.Expected(plan.Warmup(c)+plan.Seconds(c)))
	case c.Requests > 0:
		return fmt.Sprintf("at most %d", c.Requests)
	}
	return unknown
}

func number(value *float64, format string) string {
	if value == nil {
		return unknown
	}
	return fmt.Sprintf(format, *value)
}
