package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderHistory writes the last hour, the oldest first.
func renderHistory(text *strings.Builder, c record.ScalingChain, width int) error {
	if c.History == nil {
		return nil
	}
	fmt.Fprintf(text, "\n%s of the last hour\n", term.Bold("HISTORY"))
	if len(*c.History) == 0 {
		text.WriteString("  nothing is told: no event and no write of the size\n")
		return nil
	}
	var table output.Table
	for _, e := range *c.History {
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times, the last time)", e.Count)
		}
		table.Rows = append(table.Rows, []string{clockText(e.Time), output.Cell(actor(e.By)), stepText(e), output.Cell(e.Text + times)})
	}
	return writeFitted(text, table, "  ", width)
}

func stepText(e record.HistoryEntry) string {
	switch {
	case e.To == nil:
		return ""
	case e.From == nil:
		return fmt.Sprintf("-> %d", *e.To)
	}
	return fmt.Sprintf("%d -> %d", *e.From, *e.To)
}
