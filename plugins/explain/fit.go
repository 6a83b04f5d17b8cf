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

// hangLast breaks the last, unstyled column into rows that fit the terminal.
func hangLast(table *output.Table, width int) {
	if width <= 0 {
		return
	}
	room := max(width-widthBefore(*table), narrowest)
	var rows [][]string
	for _, row := range table.Rows {
		last := len(row) - 1
		lines := strings.Split(strings.TrimSuffix(wrap(row[last], room), "\n"), "\n")
		row[last] = lines[0]
		rows = append(rows, row)
		for _, line := range lines[1:] {
			more := make([]string, len(row))
			more[last] = strings.TrimPrefix(line, "  ")
			rows = append(rows, more)
		}
	}
	table.Rows = rows
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

// wrap breaks lines that are wider than width between words, and indents what
// follows below the line's own text.
func wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if lipgloss.Width(line) <= width {
			out.WriteString(line + "\n")
			continue
		}
		indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))+2)
		used := 0
		for i, word := range breakLong(strings.Split(line, " "), width-len(indent)) {
			size := lipgloss.Width(word)
			switch {
			case i == 0:
			case used+1+size > width && used > len(indent):
				out.WriteString("\n" + indent)
				used = len(indent)
			default:
				out.WriteString(" ")
				used++
			}
			out.WriteString(word)
			used += size
		}
		out.WriteString("\n")
	}
	return out.String()
}

// breakLong breaks words that are wider than a line, such as names: a terminal
// would break them anyway, at a place that the next line's indent knows nothing
// of.
func breakLong(words []string, width int) []string {
	if width <= 0 {
		return words
	}
	var out []string
	for _, word := range words {
		for lipgloss.Width(word) > width && !strings.Contains(word, "\x1b") {
			head, used := 0, 0
			for at, r := range word {
				if used += lipgloss.Width(string(r)); used > width {
					break
				}
				head = at + len(string(r))
			}
			if head == 0 {
				break
			}
			out, word = append(out, word[:head]), word[head:]
		}
		out = append(out, word)
	}
	return out
}

// cutStyled cuts a styled line to width columns.
func cutStyled(line string, width int) string {
	if lipgloss.Width(line) <= width {
		return line
	}
	return lipgloss.NewStyle().MaxWidth(width).Render(line)
}
