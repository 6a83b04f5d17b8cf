package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// What to do with a report: one that a Job saved is found by its run, one of a
// local run is nowhere but in its output.
const (
	nextSaved = "kubectl inference envelope "
	nextLocal = "repeat it with -o json > report.json, then kubectl inference envelope report.json"
)

// unknown stands where a number is not known.
const unknown = "-"

// writer renders a report; next is the step that follows.
func writer(report record.BenchReport, next string) func(io.Writer) error {
	return func(w io.Writer) error { return render(w, report, next) }
}

// render prints one line a case, and below it what a reader must know before
// using a number: failures first.
func render(w io.Writer, report record.BenchReport, next string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "run %s: %s at %s\n\n", term.Bold(output.Cell(report.Run)), output.Cell(report.Target.Model), output.Cell(report.Plan.Target.URL))
	table := output.Table{
		Header: []string{"SHAPE", "LOAD", "REQ/S", "TOK/S", "TTFT P50", "TTFT P99", "E2E P50", "E2E P99", "WAIT", "KV", "ERRORS", ""},
		Right:  []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	}
	for _, c := range report.Cases {
		verdict := term.Good("ok")
		if !c.Validity.Valid {
			verdict = term.Bad("not valid")
		}
		errors := fmt.Sprint(c.Counts.Failed)
		if c.Counts.Failed > 0 {
			errors = term.Bad(errors)
		}
		table.Rows = append(table.Rows, []string{
			c.Case.Shape(), describe(c.Case),
			fmt.Sprintf("%.2f", c.RequestsPerSecond), fmt.Sprintf("%.0f", c.OutputTokensPerSecond),
			seconds(c.Latency.TTFT.P50), seconds(c.Latency.TTFT.P99), seconds(c.Latency.E2E.P50), seconds(c.Latency.E2E.P99),
			number(mean(c.Server[record.SignalWaiting]), "%.2f"), number(mean(c.Server[record.SignalKVCacheUsage]), "%.2f"),
			errors, verdict,
		})
	}
	if err := table.Write(&text, ""); err != nil {
		return err
	}
	for _, c := range report.Cases {
		for _, finding := range c.Validity.Reasons {
			fmt.Fprintf(&text, "%s %s: %s\n", term.Bad("not valid"), c.Case.Name, output.Cell(finding.Message))
		}
		for _, finding := range c.Validity.Warnings {
			fmt.Fprintf(&text, "%s %s: %s\n", term.Caution("note"), c.Case.Name, output.Cell(finding.Message))
		}
	}
	for _, one := range report.Skipped {
		fmt.Fprintf(&text, "%s %s: left out: %s\n", term.Caution("note"), one.Case, output.Cell(one.Message))
	}
	text.WriteString(kneeLines(report.Knee))
	fmt.Fprintf(&text, "\nnext: %s\n", output.Cell(next))
	_, err := io.WriteString(w, text.String())
	return err
}

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

func mean(series *record.ServerSeries) *float64 {
	if series == nil {
		return nil
	}
	return series.Mean
}

func number(value *float64, format string) string {
	if value == nil {
		return unknown
	}
	return fmt.Sprintf(format, *value)
}

// seconds prints a latency with three digits: 3.12s, 48ms.
func seconds(value *float64) string {
	switch {
	case value == nil:
		return unknown
	// Below what would round to 1000ms.
	case *value < 0.9995:
		return fmt.Sprintf("%.0fms", *value*1000)
	}
	return fmt.Sprintf("%.2fs", *value)
}
