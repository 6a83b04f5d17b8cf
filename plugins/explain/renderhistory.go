package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderHistory writes the last hour, the oldest first.
func renderHistory(text *strings.Builder, e record.ScalingExplanation, c record.ScalingChain, width int) error {
	if c.History == nil {
		return nil
	}
	fmt.Fprintf(text, "\n%s of the last hour\n", term.Bold("HISTORY"))
	if len(*c.History) == 0 {
		nothing := "nothing is told: no event and no write of the size"
		if slices.ContainsFunc(e.Unread, func(u record.UnreadInput) bool { return u.Input == "events" }) {
			nothing = "nothing is told: the events could not be read, and no write of the size is newer"
		}
		text.WriteString("  " + nothing + "\n")
		return nil
	}
	var table output.Table
	for _, e := range *c.History {
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times, the last time)", e.Count)
		}
		table.Rows = append(table.Rows, []string{clockText(e.Time), output.Cell(actor(e.By)), stepText(e), output.Cell(shortened(plainMetric(e.Text), 200) + times)})
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
