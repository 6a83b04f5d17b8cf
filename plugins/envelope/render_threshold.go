package envelope

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// maxLoads is the number of loads that a line of a trigger shows.
const maxLoads = 6

func triggerName(name string) string {
	switch name {
	case record.TriggerWaiting:
		return "waiting"
	case record.TriggerKV:
		return "kv cache"
	case record.TriggerRunning:
		return "running"
	case record.TriggerP99E2E:
		return "p99 e2e s"
	case record.TriggerP99TTFT:
		return "p99 ttft s"
	}
	return name
}

// thresholds is the table of the proposed targets with the signal at each
// load, what they rest on, and what is withheld; then the user's own.
func (p *page) thresholds(shape record.ShapeEnvelope) {
	shown := p.shownLoads(shape)
	table := p.signalTable("THRESHOLD", "TARGET", shape, shown)
	var proposed, withheld []record.Threshold
	for _, one := range shape.Thresholds {
		if one.Withheld != nil {
			withheld = append(withheld, one)
			continue
		}
		proposed = append(proposed, one)
		table.Rows = append(table.Rows, append([]string{
			triggerName(one.Trigger), term.Bold(number(one.Threshold)), number(one.ActsAbove)}, signals(one.Loads, shown)...))
	}
	p.line("")
	if len(proposed) > 0 {
		if p.err == nil {
			p.err = table.Write(p.w, "")
		}
		p.wrap(indent, fmt.Sprintf("+ the HPA adds a replica: the value is more than %s %% above the target", output.Number(100*p.envelope.Tolerance)))
	} else {
		p.line("THRESHOLD")
	}
	for _, one := range proposed {
		text := fmt.Sprintf("%s, as %s: %s", triggerName(one.Trigger), one.MetricType, one.How)
		if interval := span(one.Interval); interval != "" {
			text += fmt.Sprintf("; its neighbours leave %s", interval)
		}
		p.bullet(text)
		for _, warning := range one.Warnings {
			p.wrap(indent+"  ", output.Cell(warning.Message))
		}
	}
	if rests := evidence(proposed); rests != "" {
		p.bullet("evidence: " + rests)
	}
	for _, one := range withheld {
		p.bullet(term.Caution("withheld") + fmt.Sprintf(" %s: %s", triggerName(one.Trigger), output.Cell(one.Withheld.Message)))
	}
	p.checks(shape, shown)
}

func (p *page) checks(shape record.ShapeEnvelope, shown []float64) {
	if len(shape.Checks) == 0 {
		return
	}
	table := p.signalTable("YOUR THRESHOLD", "TARGET", shape, shown)
	for _, one := range shape.Checks {
		table.Rows = append(table.Rows, append([]string{
			triggerName(one.Trigger), output.Number(one.Threshold), output.Number(one.ActsAbove)}, signals(one.Loads, shown)...))
	}
	p.line("")
	if p.err == nil {
		p.err = table.Write(p.w, "")
	}
	for _, one := range shape.Checks {
		p.bullet(fmt.Sprintf("%s %s", triggerName(one.Trigger), one.Verdict))
	}
}

func (p *page) signalTable(first, second string, shape record.ShapeEnvelope, shown []float64) output.Table {
	table := output.Table{Header: []string{first, second, "ACTS ABOVE"}, Right: []int{1, 2}}
	for _, load := range shown {
		table.Right = append(table.Right, len(table.Header))
		table.Header = append(table.Header, "c="+output.Number(load))
	}
	return table
}

// shownLoads are the loads that fit on a line: those nearest to the plan.
func (p *page) shownLoads(shape record.ShapeEnvelope) []float64 {
	all := loads(shape)
	if len(all) <= maxLoads {
		return all
	}
	first := 0
	if at := shape.Capacity.XPlan.Concurrency; at != nil {
		for first < len(all) && all[first] < *at {
			first++
		}
		first -= maxLoads / 2
	}
	first = min(max(first, 0), len(all)-maxLoads)
	return all[first : first+maxLoads]
}

func signals(all []record.TriggerLoad, shown []float64) []string {
	cells := make([]string, len(shown))
	for i, load := range shown {
		cells[i] = "-"
		for _, at := range all {
			if at.Concurrency != load || at.Value == nil {
				continue
			}
			cells[i] = output.Number(*at.Value)
			if at.Acts != nil && *at.Acts {
				cells[i] = term.Accent(cells[i] + "+")
			}
		}
	}
	return cells
}

// evidence names every case that the thresholds rest on, once.
func evidence(thresholds []record.Threshold) string {
	text, run := "", ""
	named := map[[2]string]bool{}
	for _, threshold := range thresholds {
		for _, one := range threshold.Evidence {
			if named[[2]string{one.Run, one.Case}] {
				continue
			}
			named[[2]string{one.Run, one.Case}] = true
			if text != "" {
				text += ", "
			}
			if one.Run != run {
				text += "run " + one.Run + " "
				run = one.Run
			}
			text += fmt.Sprintf("case %s (%ss, %d requests", one.Case, output.Number(one.WindowSeconds), one.Requests)
			if one.Samples != nil && *one.Samples != one.Requests {
				text += fmt.Sprintf(", %d samples", *one.Samples)
			}
			text += ")"
		}
	}
	return text
}
