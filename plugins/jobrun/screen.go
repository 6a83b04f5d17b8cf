package jobrun

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Screen draws a progress event on several lines of at most width columns; none
// means that the event has nothing to draw.
type Screen func(event record.Event, width int) []string

// painting is what is on the terminal and will be drawn over: lines of these
// widths.
type painting struct{ widths []int }

// rows is the number of rows that the painting takes on a terminal of this
// width: a terminal that was made narrower has wrapped its lines.
func (p painting) rows(width int) int {
	rows := 0
	for _, w := range p.widths {
		rows += max(1, (w+width-1)/max(width, 1))
	}
	return rows
}

// paint draws the lines over those before, in one write: each line is written
// and then cleared to its end, so that nothing flickers.
func (v *View) paint(lines []string, width int) {
	var text strings.Builder
	if rows := v.painted.rows(width); rows > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", rows)
	}
	text.WriteString("\r")
	v.painted = painting{}
	for _, line := range lines {
		text.WriteString(v.streams.ErrText(line) + "\x1b[K\n")
		v.painted.widths = append(v.painted.widths, lipgloss.Width(line))
	}
	text.WriteString("\x1b[J")
	fmt.Fprint(v.streams.ErrWriter(), text.String())
}

// clear takes the painting from the terminal, where other words come: they go
// above the next one.
func (v *View) clear() {
	if rows := v.painted.rows(v.width()); rows > 0 {
		fmt.Fprintf(v.streams.ErrWriter(), "\x1b[%dA\r\x1b[J", rows)
		v.painted = painting{}
	}
}

// repaint draws the last painting again.
func (v *View) repaint() {
	if len(v.lines) > 0 {
		v.paint(v.lines, v.width())
	}
}

func (v *View) width() int {
	if width := v.streams.ErrWidth(); width > 0 {
		return width
	}
	return defaultWidth
}
