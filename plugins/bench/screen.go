package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// now is what a progress event says of the case under way; nil is unknown.
type now struct {
	Case        string         `json:"case"`
	Number      int            `json:"case_number"`
	Cases       int            `json:"cases"`
	Phase       string         `json:"phase"`
	InFlight    int            `json:"in_flight"`
	Concurrency int            `json:"concurrency"`
	Completed   int            `json:"completed"`
	Failed      int            `json:"errors"`
	Classes     map[string]int `json:"errors_by_class"`
	Rate        *float64       `json:"requests_per_second"`
	Tokens      *float64       `json:"output_tokens_per_second"`
	TTFTP50     *float64       `json:"ttft_p50_seconds"`
	TTFTP99     *float64       `json:"ttft_p99_seconds"`
	E2EP50      *float64       `json:"p50_seconds"`
	E2EP99      *float64       `json:"p99_seconds"`
	Waiting     *float64       `json:"waiting"`
	KVCache     *float64       `json:"kv_cache_usage"`
}

// screen draws a case under way. Failures come first: a run that only fails must
// not look busy.
func screen(event record.Event, width int) []string {
	var n now
	// The event of a Job has gone through JSON, that of a local run has not.
	data, err := json.Marshal(event.Fields)
	if err != nil || json.Unmarshal(data, &n) != nil || n.Case == "" {
		return nil
	}
	var lines []string
	if n.Failed > 0 {
		lines = append(lines, flow(width, term.Bad(fmt.Sprintf("FAILED %d of %d requests:", n.Failed, n.Failed+n.Completed)), failed(n.Classes)...)...)
	}
	head := []string{output.Cell(n.Phase)}
	if event.Done != nil && event.Total != nil && *event.Total > 0 {
		head = append(head, bar(*event.Done / *event.Total), left(*event.Total-*event.Done))
	}
	flight := fmt.Sprintf("in flight %d", n.InFlight)
	if n.Concurrency > 0 {
		flight += fmt.Sprintf(" of %d", n.Concurrency)
	}
	place := fmt.Sprint(n.Number)
	if n.Cases > 0 {
		place = fmt.Sprintf("%d/%d", n.Number, n.Cases)
	}
	lines = append(lines, flow(width, fmt.Sprintf("case %s %s", place, term.Bold(output.Cell(n.Case))), head...)...)
	lines = append(lines, flow(width, flight, number(n.Rate, "%.3g")+" req/s", number(n.Tokens, "%.0f")+" tok/s", fmt.Sprintf("%d done", n.Completed))...)
	lines = append(lines, flow(width, "TTFT p50 "+short(n.TTFTP50)+" p99 "+short(n.TTFTP99), "E2E p50 "+short(n.E2EP50)+" p99 "+short(n.E2EP99))...)
	if n.Waiting != nil || n.KVCache != nil {
		kv := unknown
		if n.KVCache != nil {
			kv = fmt.Sprintf("%.0f %%", 100**n.KVCache)
		}
		lines = append(lines, flow(width, "server: "+number(n.Waiting, "%.3g")+" waiting", "KV cache "+kv)...)
	}
	return lines
}

// failed lists the classes of errors, the most frequent first.
func failed(classes map[string]int) []string {
	names := slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
		if classes[a] != classes[b] {
			return classes[b] - classes[a]
		}
		return strings.Compare(a, b)
	})
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("%s %d", output.Cell(name), classes[name])
	}
	return all
}

// flow lays parts out on as few lines as the width allows. A part that is too
// long for a line is cut.
func flow(width int, first string, rest ...string) []string {
	const indent, space = "  ", "   "
	lines := []string{indent + first}
	for _, part := range rest {
		last := &lines[len(lines)-1]
		if joined := *last + space + part; lipgloss.Width(joined) <= width {
			*last = joined
		} else {
			lines = append(lines, indent+"  "+part)
		}
	}
	for i, line := range lines {
		lines[i] = lipgloss.NewStyle().MaxWidth(max(width, 1)).Render(line)
	}
	return lines
}

const barWidth = 20

func bar(share float64) string {
	share = max(0, min(1, share))
	filled := int(math.Round(share * barWidth))
	return fmt.Sprintf("[%s%s] %.0f%%", strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), 100*share)
}

// left says how long the run still takes by its plan; drains come on top.
func left(seconds float64) string {
	return "about " + time.Duration(max(seconds, 0)*float64(time.Second)).Round(time.Second).String() + " left"
}

// short prints a latency with three digits: 8.4ms, 120ms, 1.25s, 35.5s, 120s.
func short(value *float64) string {
	switch {
	case value == nil:
		return unknown
	case *value < 0.00995:
		return fmt.Sprintf("%.1fms", *value*1000)
	case *value < 0.9995:
		return fmt.Sprintf("%.0fms", *value*1000)
	case *value < 9.995:
		return fmt.Sprintf("%.2fs", *value)
	case *value < 99.95:
		return fmt.Sprintf("%.1fs", *value)
	}
	return fmt.Sprintf("%.0fs", *value)
}
