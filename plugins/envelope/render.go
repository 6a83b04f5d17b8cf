package envelope

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const (
	defaultWidth = 80
	minWidth     = 72
	maxWidth     = 110
	indent       = "  "
)

// page writes the parts of an envelope one after the other; the first error of
// the writer ends it.
type page struct {
	w        io.Writer
	width    int
	err      error
	envelope record.CapacityEnvelope
}

// render writes the envelope for people, width columns wide, 0 for a stream
// without a width.
func render(w io.Writer, envelope record.CapacityEnvelope, width int) error {
	if width <= 0 {
		width = defaultWidth
	}
	p := &page{w: w, width: min(max(width, minWidth), maxWidth), envelope: envelope}
	for i, shape := range envelope.Shapes {
		if i > 0 {
			p.line("")
			p.line(term.Faint(strings.Repeat("─", p.width)))
		}
		p.shape(shape)
	}
	return p.err
}

func (p *page) shape(shape record.ShapeEnvelope) {
	p.header(shape)
	p.plan(shape)
	if len(shape.Levels) > 0 {
		if len(shape.Levels) > 1 {
			p.throughputChart(shape)
			p.latencyChart(shape)
		}
		p.cases(shape)
		p.rates(shape)
		p.knees(shape)
		p.thresholds(shape)
	}
	p.notes(shape)
}

func shapeName(shape record.ShapeEnvelope) string {
	return fmt.Sprintf("%d/%d", shape.PromptTokens, shape.OutputTokens)
}

// header names the model, the shape and the runs.
func (p *page) header(shape record.ShapeEnvelope) {
	var runs []string
	for _, run := range p.envelope.Runs {
		runs = append(runs, output.Cell(run.Run))
	}
	left := fmt.Sprintf("%s at %s tokens, one replica", output.Cell(p.envelope.Model), shapeName(shape))
	right := plural(len(runs), "run") + " " + strings.Join(runs, ", ")
	space := p.width - lipgloss.Width(left) - lipgloss.Width(right)
	if space < 2 {
		p.line(term.Bold(left))
		p.wrap("", right)
		return
	}
	p.line(term.Bold(left) + strings.Repeat(" ", space) + term.Faint(right))
}

// plan is the answer: the rate to plan with, and what limits it.
func (p *page) plan(shape record.ShapeEnvelope) {
	plan := shape.Capacity.XPlan
	p.line("")
	if plan.Withheld != nil {
		p.wrap(indent, term.Caution("No rate to plan with: ")+output.Cell(plan.Withheld.Message)+".")
		return
	}
	atLeast := "about "
	if plan.LowerBound {
		atLeast = "at least "
	}
	p.wrap(indent, term.Bold(fmt.Sprintf("One replica carries %s%s req/s at %s", atLeast, output.Number(*plan.RequestsPerSecond), shapeName(shape)))+
		fmt.Sprintf(" (binding: %s)", output.Cell(plan.Binding.Message)))
	text := fmt.Sprintf("%s %% headroom is kept", output.Number(100*p.envelope.Headroom))
	if plan.Concurrency != nil {
		text += fmt.Sprintf("; this rate is reached at about c=%s", output.Number(*plan.Concurrency))
	}
	if plan.Confidence != nil {
		text += fmt.Sprintf("; the objective holds at c=%s with at least %s %% confidence",
			number(shape.Capacity.XSLO.Concurrency), output.Number(min(100**plan.Confidence, 99.9)))
	}
	p.wrap(indent, text+".")
}

// rates is the table of the four rates.
func (p *page) rates(shape record.ShapeEnvelope) {
	table := output.Table{Header: []string{"CAPACITY", "REQ/S", "95 %", "AT C=", "WHY NOT MORE"}, Right: []int{1, 3}}
	for _, row := range []struct {
		name string
		rate record.Rate
	}{
		{"X_max", shape.Capacity.XMax}, {"X_sustain", shape.Capacity.XSustain},
		{"X_slo", shape.Capacity.XSLO}, {"X_plan", shape.Capacity.XPlan},
	} {
		rate := row.rate
		if rate.Withheld != nil {
			table.Rows = append(table.Rows, []string{row.name, "-", "", "", output.Cell(rate.Withheld.Message)})
			continue
		}
		why := output.Cell(rate.Binding.Message)
		if row.name == "X_plan" {
			why = "the smaller of both, less the headroom"
		}
		if rate.LowerBound {
			why = "at least: " + why
		}
		table.Rows = append(table.Rows, []string{row.name, output.Number(*rate.RequestsPerSecond), span(rate.Interval), number(rate.Concurrency), why})
	}
	p.line("")
	p.table(table)
}

// kneeNames are the rules in the words of the field.
func kneeName(rule string) string {
	switch rule {
	case record.KneeBounds:
		return "operational bounds"
	case record.KneePower:
		return "Kleinrock power"
	case record.KneeKneedle:
		return "Kneedle"
	case record.KneeMarginal:
		return "marginal gain"
	case record.KneeSLO:
		return "objective"
	}
	return rule
}

func (p *page) knees(shape record.ShapeEnvelope) {
	table := output.Table{Header: []string{"KNEE BY RULE", "C=", "RANGE", "RULE"}, Right: []int{1}}
	for _, knee := range shape.Knees {
		how := knee.How
		if knee.Withheld != nil {
			how = "none: " + output.Cell(knee.Withheld.Message)
		}
		table.Rows = append(table.Rows, []string{kneeName(knee.Rule), number(knee.Concurrency), span(knee.Interval), output.Cell(how)})
	}
	p.line("")
	p.table(table)
	if r := shape.KneeRange; r.Low != nil && r.High != nil && *r.Low != *r.High {
		word := term.Caution("the rules disagree")
		if r.Agree {
			word = term.Good("the rules agree")
		}
		p.wrap(indent, fmt.Sprintf("%s: c=%s to c=%s", word, number(r.Low), number(r.High)))
	}
	fit := shape.Fit
	if fit.Withheld != nil {
		p.wrap(indent, "no USL fit: "+output.Cell(fit.Withheld.Message))
		return
	}
	text := fmt.Sprintf("USL fit of %d points: lambda %s, sigma %s, kappa %s", fit.Points, number(fit.Lambda), number(fit.Sigma), number(fit.Kappa))
	if fit.Peak != nil {
		text += fmt.Sprintf(", peak at c=%s", number(fit.Peak))
		if interval := span(fit.PeakInterval); interval != "" {
			text += " (" + interval + ")"
		}
	}
	if fit.R2 != nil {
		text += fmt.Sprintf("; R2 %.4f", *fit.R2)
	}
	if fit.HoldOutWorst != nil {
		text += fmt.Sprintf("; left-out loads are predicted within %s %%", output.Number(100**fit.HoldOutWorst))
	}
	p.wrap(indent, text)
}

// notes are the loads to measure next, the cases left out and the warnings.
func (p *page) notes(shape record.ShapeEnvelope) {
	if len(shape.NextLoads) > 0 {
		p.line("")
		p.line("MEASURE NEXT")
		for _, next := range shape.NextLoads {
			p.bullet(fmt.Sprintf("c=%d: %s", next.Concurrency, next.Why))
		}
	}
	if len(shape.Warnings)+len(shape.Excluded) == 0 {
		return
	}
	p.line("")
	p.line("WARNINGS")
	for _, excluded := range shape.Excluded {
		p.bullet(term.Caution("left out") + fmt.Sprintf(" case %s of run %s: %s", output.Cell(excluded.Case), output.Cell(excluded.Run), output.Cell(excluded.Reason.Message)))
	}
	for _, warning := range shape.Warnings {
		p.bullet(output.Cell(warning.Message))
	}
}

func (p *page) line(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text+"\n")
	}
}

// wrap writes text behind prefix within the width; following lines stand under
// the first word.
func (p *page) wrap(prefix, text string) {
	hanging := strings.Repeat(" ", lipgloss.Width(prefix))
	for _, line := range fold(text, p.width-len(hanging)) {
		p.line(prefix + line)
		prefix = hanging
	}
}

// fold breaks text at its spaces only: names of runs and cases have hyphens.
func fold(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case lipgloss.Width(line)+1+lipgloss.Width(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

func (p *page) bullet(text string) { p.wrap(indent+"- ", strings.TrimSpace(text)) }

// table writes a table whose last column wraps below itself.
func (p *page) table(table output.Table) {
	last := len(table.Header) - 1
	used := 0
	for column := range last {
		width := lipgloss.Width(table.Header[column])
		for _, row := range table.Rows {
			width = max(width, lipgloss.Width(row[column]))
		}
		used += width + columnGap
	}
	room := max(p.width-used, 16)
	wrapped := output.Table{Header: table.Header, Right: table.Right}
	for _, row := range table.Rows {
		for i, line := range fold(row[last], room) {
			next := make([]string, len(row))
			if i == 0 {
				copy(next, row)
			}
			next[last] = line
			wrapped.Rows = append(wrapped.Rows, next)
		}
	}
	if p.err == nil {
		p.err = wrapped.Write(p.w, "")
	}
}

// columnGap is the space between two columns of output.Table.
const columnGap = 3

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return output.Number(*v)
}

func span(interval *record.Interval) string {
	if interval == nil {
		return ""
	}
	switch {
	case interval.Low == nil && interval.High == nil:
		return ""
	case interval.High == nil:
		return "from " + number(interval.Low)
	case interval.Low == nil:
		return "to " + number(interval.High)
	case number(interval.Low) == number(interval.High):
		return number(interval.Low)
	}
	return number(interval.Low) + " to " + number(interval.High)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
