package output

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// gap is the space between two columns of most tables, as in kubectl.
const gap = 3

// Table is a table in kubectl's manner: upper-case headers, columns aligned by
// spaces, no rules. Cells may be styled; a cell's width is what is seen.
type Table struct {
	Header []string
	Rows   [][]string
	// Right names the columns (by index) that align to the right: numbers.
	Right []int
	// Gap is the space between two columns; 0 is three, as in kubectl.
	Gap int
}

// Cell cleans text that came from a server for use in a Table.
func Cell(text string) string { return failure.Clean(text) }

// Write prints the table, each line behind indent. The last column is not
// padded, so that lines carry no trailing space.
func (t Table) Write(w io.Writer, indent string) error {
	rows := t.Rows
	if len(t.Header) > 0 {
		rows = append([][]string{t.Header}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	space := gap
	if t.Gap > 0 {
		space = t.Gap
	}
	right := map[int]bool{}
	for _, column := range t.Right {
		right[column] = true
	}
	var text strings.Builder
	for _, row := range rows {
		var line strings.Builder
		line.WriteString(indent)
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-lipgloss.Width(cell))
			if right[i] {
				line.WriteString(padding + cell)
				padding = ""
			} else {
				line.WriteString(cell)
			}
			if i < len(row)-1 {
				line.WriteString(padding + strings.Repeat(" ", space))
			}
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}
