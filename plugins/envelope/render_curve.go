package envelope

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const (
	// Nine rows give a tick of fifths or quarters its own row, evenly.
	throughputRows = 9
	latencyRows    = 9
	// axisRoom is what the y axis and its numbers, and the x axis' name take.
	axisRoom = 10
	xLabel   = "c"

	measuredMark = '●'
	medianMark   = '○'
)

func loads(shape record.ShapeEnvelope) []float64 {
	var all []float64
	for _, level := range shape.Levels {
		all = append(all, level.Concurrency)
	}
	return all
}

// throughputChart shows the measured rates, the fit and the planned load.
func (p *page) throughputChart(shape record.ShapeEnvelope) {
	chart := output.Chart{
		Title: "THROUGHPUT req/s, c in flight", Width: p.width - axisRoom, Height: throughputRows,
		XLabel: xLabel, XTicks: loads(shape),
	}
	fitted := output.Series{Name: "USL fit", Line: true, Style: term.Faint}
	for _, point := range shape.Fit.Curve {
		fitted.X, fitted.Y = append(fitted.X, point.Concurrency), append(fitted.Y, point.RequestsPerSecond)
	}
	measured := output.Series{Name: "measured", Mark: measuredMark, Style: term.Accent}
	for _, level := range shape.Levels {
		measured.X, measured.Y = append(measured.X, level.Concurrency), append(measured.Y, level.RequestsPerSecond)
	}
	chart.Series = []output.Series{measured}
	if len(fitted.X) > 0 {
		chart.Series = append(chart.Series, fitted)
	} else {
		chart.Series[0].Line = true
	}
	if plan := shape.Capacity.XPlan; plan.Concurrency != nil {
		chart.Upright = []output.Rule{{At: *plan.Concurrency, Label: fmt.Sprintf("plan: %s req/s at c=%s", number(plan.RequestsPerSecond), number(plan.Concurrency))}}
	}
	p.chart(chart)
}

// latencyChart shows the end-to-end latency, p99 and the median, with the
// objective where there is one.
func (p *page) latencyChart(shape record.ShapeEnvelope) {
	tail := p.latencySeries(shape, record.TriggerP99E2E, "p99", measuredMark, term.Accent)
	if len(tail.X) == 0 {
		return
	}
	tail.Line = true
	chart := output.Chart{
		Title: "LATENCY end to end, seconds", Width: p.width - axisRoom, Height: latencyRows,
		XLabel: xLabel, XTicks: loads(shape), Series: []output.Series{tail},
	}
	if median := p.latencySeries(shape, "p50_e2e", "p50", medianMark, nil); len(median.X) > 0 {
		chart.Series = append(chart.Series, median)
	}
	top := 0.0
	for _, y := range tail.Y {
		top = math.Max(top, y)
	}
	for _, slo := range p.envelope.SLOs {
		// A limit far above the data would flatten it: it is then in words only.
		if slo.Metric == record.MetricE2E && slo.MaxSeconds <= 2*top {
			chart.Level = append(chart.Level, output.Rule{At: slo.MaxSeconds, Label: fmt.Sprintf("limit p%s %ss", output.Number(slo.Percentile), output.Number(slo.MaxSeconds))})
			chart.YMax = math.Max(top, slo.MaxSeconds)
		}
	}
	if plan := shape.Capacity.XPlan; plan.Concurrency != nil {
		chart.Upright = []output.Rule{{At: *plan.Concurrency}}
	}
	p.chart(chart)
}

func (p *page) latencySeries(shape record.ShapeEnvelope, name, label string, mark rune, style func(string) string) output.Series {
	series := output.Series{Name: label, Mark: mark, Style: style}
	for _, level := range shape.Levels {
		if at, ok := level.Latencies[name]; ok {
			series.X, series.Y = append(series.X, level.Concurrency), append(series.Y, at.Seconds)
		}
	}
	return series
}

func (p *page) chart(chart output.Chart) {
	p.line("")
	if p.err == nil {
		p.err = chart.Write(p.w, "")
	}
}

// column is one column of the table of cases; a column without any value is
// left out.
type column struct {
	name string
	cell func(record.CapacityLevel) string
}

// cases is the table of the loads.
func (p *page) cases(shape record.ShapeEnvelope) {
	table := output.Table{}
	used := false
	for _, one := range p.columns() {
		var cells []string
		known := false
		for _, level := range shape.Levels {
			cell := one.cell(level)
			known = known || cell != ""
			cells = append(cells, cell)
		}
		if !known {
			continue
		}
		table.Right = append(table.Right, len(table.Header))
		table.Header = append(table.Header, one.name)
		for i, cell := range cells {
			if len(table.Rows) <= i {
				table.Rows = append(table.Rows, nil)
			}
			if cell == "" {
				cell = "-"
			}
			table.Rows[i] = append(table.Rows[i], cell)
		}
	}
	for i, level := range shape.Levels {
		if level.Saturation.Over {
			used = true
			table.Rows[i][0] = "! " + table.Rows[i][0]
		}
	}
	p.line("")
	if p.err == nil {
		p.err = table.Write(p.w, "")
	}
	if used {
		for _, level := range shape.Levels {
			for _, test := range level.Saturation.Tests {
				if test.Result == record.TestFailed {
					p.wrap(indent+"! ", fmt.Sprintf("c=%s is too much: %s", output.Number(level.Concurrency), test.Detail))
				}
			}
		}
	}
	p.wrap(indent, legend(table.Header))
	if thin(shape) {
		p.line(indent + "* from too few requests for that percentile")
	}
}

// legend says what the columns hold.
func legend(columns []string) string {
	text := "C is requests in flight"
	for _, name := range columns {
		switch name {
		case "GAIN":
			text += "; GAIN is req/s for one more in flight"
		case "P99":
			text += "; P99 is end to end in seconds"
		case "TTFT99":
			text += "; TTFT99 is the p99 to the first token"
		case "WAIT":
			text += "; WAIT, RUN and KV are averages"
		}
	}
	return text
}

func thin(shape record.ShapeEnvelope) bool {
	for _, level := range shape.Levels {
		for _, name := range []string{"p50_e2e", record.TriggerP99E2E, record.TriggerP99TTFT} {
			if at, ok := level.Latencies[name]; ok && !at.Confident {
				return true
			}
		}
	}
	return false
}

func (p *page) columns() []column {
	latency := func(name string) func(record.CapacityLevel) string {
		return func(level record.CapacityLevel) string {
			at, ok := level.Latencies[name]
			if !ok {
				return ""
			}
			mark := ""
			if !at.Confident {
				mark = "*"
			}
			return output.Number(at.Seconds) + mark
		}
	}
	signal := func(name string, scale float64, unit string) func(record.CapacityLevel) string {
		return func(level record.CapacityLevel) string {
			at, ok := level.Signals[name]
			if !ok {
				return ""
			}
			return output.Number(scale*at.Mean) + unit
		}
	}
	optional := func(v *float64) string {
		if v == nil {
			return ""
		}
		return output.Number(*v)
	}
	return []column{
		{"C", func(l record.CapacityLevel) string { return output.Number(l.Concurrency) }},
		{"REQ/S", func(l record.CapacityLevel) string { return output.Number(l.RequestsPerSecond) }},
		{"GAIN", func(l record.CapacityLevel) string { return optional(l.GainPerRequest) }},
		{"TOK/S", func(l record.CapacityLevel) string { return optional(l.OutputTokensPerSecond) }},
		{"P50", latency("p50_e2e")},
		{"P99", latency(record.TriggerP99E2E)},
		{"TTFT99", latency(record.TriggerP99TTFT)},
		{"WAIT", signal(record.SignalWaiting, 1, "")},
		{"RUN", signal(record.SignalRunning, 1, "")},
		{"KV", signal(record.SignalKVCacheUsage, 100, "%")},
	}
}
