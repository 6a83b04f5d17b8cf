package explain

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

// writeFitted writes a table as wide as it is where that fits the terminal,
// else with its last column broken into lines, else each row as a few lines.
func writeFitted(w io.Writer, table output.Table, indent string, width int) error {
	room := width - len(indent)
	switch {
	case width <= 0 || widthOf(table) <= room:
	case !tooNarrow(table, room):
		hangLast(&table, room)
	default:
		return writeStacked(w, table, indent, width)
	}
	return table.Write(w, indent)
}

// tooNarrow says that too little is left for a table's last column.
func tooNarrow(table output.Table, width int) bool {
	return width > 0 && widthBefore(table)+narrowest > width
}

// widthOf is the width of a whole table.
func widthOf(table output.Table) int {
	widest := 0
	for _, row := range append([][]string{table.Header}, table.Rows...) {
		if len(row) > 0 {
			widest = max(widest, lipgloss.Width(row[len(row)-1]))
		}
	}
	return widthBefore(table) + widest
}

// writeStacked writes each row as a line with its first cell and, below it, a
// line for each other cell behind its header.
func writeStacked(w io.Writer, table output.Table, indent string, width int) error {
	var text strings.Builder
	for _, row := range table.Rows {
		text.WriteString(indent + strings.TrimRight(row[0], " ") + "\n")
		deeper := indent + strings.Repeat(" ", len(row[0])-len(strings.TrimLeft(row[0], " ")))
		for i, cell := range row[1:] {
			if strings.TrimSpace(cell) == "" {
				continue
			}
			if i+1 < len(table.Header) && table.Header[i+1] != "" {
				cell = strings.ToLower(table.Header[i+1]) + ": " + cell
			}
			text.WriteString(deeper + "  " + cell + "\n")
		}
	}
	_, err := io.WriteString(w, wrap(text.String(), width))
	return err
}
