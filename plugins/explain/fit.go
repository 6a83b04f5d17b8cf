package explain

import (
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

// columnGap is the space that output.Table leaves between columns.
const columnGap = 3

// narrowest is the width below which text is not cut any further.
const narrowest = 24

// fitLast cuts the last, unstyled column so that lines fit the terminal.
func fitLast(table *output.Table, width int) {
	if width <= 0 || len(table.Rows) == 0 {
		return
	}
	room := max(width-widthBefore(*table), narrowest)
	for _, row := range table.Rows {
		last := len(row) - 1
		row[last] = cut(row[last], room)
	}
}

// widthBefore is the width of all columns but the last.
func widthBefore(table output.Table) int {
	rows := append([][]string{table.Header}, table.Rows...)
	var widths []int
	for _, row := range rows {
		for i := range max(len(row)-1, 0) {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(row[i]))
		}
	}
	total := 0
	for _, w := range widths {
		total += w + columnGap
	}
	return total
}

// cut shortens a line of plain text to width columns.
func cut(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	var short strings.Builder
	used := 0
	for _, r := range text {
		if used += lipgloss.Width(string(r)); used > width-3 {
			break
		}
		short.WriteRune(r)
	}
	return short.String() + "..."
}
