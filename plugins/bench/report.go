package bench

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// What to do with a report: one that a Job saved is found by its run, one of a
// local run is nowhere but in its output.
const (
	nextSaved = "kubectl inference envelope "
	nextLocal = "repeat it with -o json > report.json, then kubectl inference envelope report.json"
	nextMend  = "mend what is named above and measure again: no case can be used"
)

// writer renders a report; next is the step that follows.
func (o *options) writer(report record.BenchReport, next string) func(io.Writer) error {
	return func(w io.Writer) error { return render(w, report, next, o.streams.Width()) }
}

// render prints what failed first, then one line a case, then what a reader
// must know before using a number. A width of 0 has room for everything.
func render(w io.Writer, report record.BenchReport, next string, width int) error {
	var text strings.Builder
	fmt.Fprintf(&text, "run %s: %s at %s\n", term.Bold(output.Cell(report.Run)), output.Cell(report.Target.Model), output.Cell(report.Plan.Target.URL))
	refused := refusals(&text, report)
	text.WriteString("\n")
	if err := cases(&text, report, width); err != nil {
		return err
	}
	notes(&text, report)
	for _, one := range report.Skipped {
		fmt.Fprintf(&text, "%s %s: left out: %s\n", term.Caution("note"), output.Cell(one.Case), output.Cell(one.Message))
	}
	text.WriteString(kneeLines(report.Knee))
	if refused == len(report.Cases) {
		next = nextMend
	}
	fmt.Fprintf(&text, "\nnext: %s\n", output.Cell(next))
	_, err := io.WriteString(w, text.String())
	return err
}

// refusals says which cases must not be used and why, and returns their number.
func refusals(text *strings.Builder, report record.BenchReport) int {
	var lines []string
	refused := 0
	for _, c := range report.Cases {
		if c.Validity.Valid {
			continue
		}
		refused++
		for _, finding := range c.Validity.Reasons {
			lines = append(lines, fmt.Sprintf("%s %s: %s\n", term.Bad("not valid"), output.Cell(c.Case.Name), output.Cell(finding.Message)))
		}
		for _, class := range failed(classesOf(c.Counts)) {
			class, _, _ = strings.Cut(class, " ")
			if sample := c.Counts.ErrorSamples[record.ErrorClass(class)]; sample != "" {
				lines = append(lines, fmt.Sprintf("  %s: %s\n", class, output.Cell(sample)))
			}
		}
	}
	if refused > 0 {
		fmt.Fprintf(text, "%s\n%s", term.Bad(fmt.Sprintf("%d of %d cases must not be used", refused, len(report.Cases))), strings.Join(lines, ""))
	}
	if report.Incomplete {
		fmt.Fprintf(text, "%s: %d cases are there, %d were planned\n", term.Caution("incomplete"), len(report.Cases)+len(report.Skipped), len(report.Plan.Cases))
	}
	return refused
}

func classesOf(counts record.CaseCounts) map[string]int {
	all := map[string]int{}
	for class, n := range counts.Errors {
		all[string(class)] = n
	}
	return all
}

// row is one case as a table has it.
type row struct {
	shape string
	cells []string
}

// columns of the table; the last two are left out where a line has 80 columns.
var columns = []string{"LOAD", "REQ/S", "TOK/S", "TTFT P50/P99", "TPOT P50/P99", "E2E P50/P99", "N", "GOOD", "VALID", "QUEUE", "KV"}

const columnsMore = 2

func cases(text *strings.Builder, report record.BenchReport, width int) error {
	var rows []row
	for _, c := range report.Cases {
		valid := term.Good("yes")
		if !c.Validity.Valid {
			valid = term.Bad("no")
		}
		good := unknown
		if c.Goodput.Share != nil {
			// Rounded down: 99.96 % is not all.
			good = fmt.Sprintf("%.4g%%", math.Floor(1000**c.Goodput.Share)/10)
		}
		kv := unknown
		if share := mean(c.Server[record.SignalKVCacheUsage]); share != nil {
			kv = fmt.Sprintf("%.0f%%", 100**share)
		}
		rows = append(rows, row{c.Case.Shape(), []string{
			describe(c.Case), fmt.Sprintf("%.2f", c.RequestsPerSecond), fmt.Sprintf("%.0f", c.OutputTokensPerSecond),
			pair(c.Latency.TTFT), pair(c.Latency.TPOT), pair(c.Latency.E2E),
			fmt.Sprint(c.Counts.Completed), good, valid, number(mean(c.Server[record.SignalWaiting]), "%.2f"), kv,
		}})
	}
	for _, keep := range []int{len(columns), len(columns) - columnsMore} {
		table, err := tabulate(rows, keep)
		if err != nil {
			return err
		}
		if width == 0 || lipgloss.Width(table) <= width {
			text.WriteString(table)
			return nil
		}
	}
	// No table fits: each case is a few lines of what the columns hold.
	for _, r := range rows {
		var parts []string
		for i, cell := range r.cells[1:] {
			if cell != unknown {
				parts = append(parts, strings.ToLower(columns[i+1])+" "+cell)
			}
		}
		text.WriteString(strings.Join(flow(width, r.shape+" at "+r.cells[0], parts...), "\n") + "\n")
	}
	return nil
}

// tabulate draws the first columns of the rows. Each shape has a line of its own
// above its cases, which keeps the lines short.
func tabulate(rows []row, keep int) (string, error) {
	table := output.Table{Header: columns[:keep], Gap: 2}
	for i := range keep {
		table.Right = append(table.Right, i)
	}
	for _, r := range rows {
		table.Rows = append(table.Rows, r.cells[:keep])
	}
	var drawn bytes.Buffer
	if err := table.Write(&drawn, ""); err != nil {
		return "", err
	}
	lines := strings.SplitAfter(drawn.String(), "\n")
	out := []string{lines[0]}
	for i, r := range rows {
		if i == 0 || r.shape != rows[i-1].shape {
			out = append(out, r.shape+"\n")
		}
		out = append(out, lines[i+1])
	}
	return strings.Join(out, ""), nil
}

// pair is the median and the 99th percentile of a latency; a ~ marks one that is
// the largest of too few samples.
func pair(s record.LatencySummary) string {
	if s.P50 == nil && s.P99 == nil {
		return unknown
	}
	mark := ""
	if s.LowN {
		mark = "~"
	}
	return short(s.P50) + "/" + mark + short(s.P99)
}

// notes prints each warning once, with the cases that it is about.
func notes(text *strings.Builder, report record.BenchReport) {
	type note struct {
		code, message string
		cases         []string
	}
	var all []note
	for _, c := range report.Cases {
		for _, finding := range c.Validity.Warnings {
			i := slices.IndexFunc(all, func(n note) bool { return n.code == finding.Code && n.message == finding.Message })
			if i < 0 {
				all = append(all, note{code: finding.Code, message: finding.Message})
				i = len(all) - 1
			}
			all[i].cases = append(all[i].cases, c.Case.Name)
		}
	}
	if len(all) > 0 {
		text.WriteString("\n")
	}
	for _, n := range all {
		fmt.Fprintf(text, "%s %s: %s\n", term.Caution("note"), output.Cell(strings.Join(n.cases, ", ")), output.Cell(n.message))
	}
}

func mean(series *record.ServerSeries) *float64 {
	if series == nil {
		return nil
	}
	return series.Mean
}
