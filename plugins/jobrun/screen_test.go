package jobrun

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// terminal is as much of a terminal as a View uses: it keeps rows, wraps, moves
// up and clears.
func terminal(t *testing.T, width int, written string) []string {
	t.Helper()
	rows, at, column := [][]rune{{}}, 0, 0
	for i := 0; i < len(written); i++ {
		rest := written[i:]
		switch {
		case strings.HasPrefix(rest, "\x1b[K"):
			rows[at] = rows[at][:min(column, len(rows[at]))]
			i += 2
		case strings.HasPrefix(rest, "\x1b[J"):
			rows[at], rows = rows[at][:min(column, len(rows[at]))], rows[:at+1]
			i += 2
		case strings.HasPrefix(rest, "\x1b["):
			end := strings.IndexByte(rest, 'A')
			n := 0
			for _, digit := range rest[2:end] {
				n = 10*n + int(digit-'0')
			}
			at = max(at-n, 0)
			i += end
		case written[i] == '\r':
			column = 0
		case written[i] == '\n':
			at, column = at+1, 0
			if at == len(rows) {
				rows = append(rows, nil)
			}
		default:
			if column == width {
				at, column = at+1, 0
				rows = append(rows, nil)
			}
			rows[at] = append(rows[at][:min(column, len(rows[at]))], append([]rune{rune(written[i])}, rows[at][min(column+1, len(rows[at])):]...)...)
			column++
		}
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, string(row))
	}
	return lines
}

// TestViewPaints: a painting is drawn over in place, words go above it, and
// nothing of it stays behind.
func TestViewPaints(t *testing.T) {
	streams, stderr := buffers("COLUMNS=40")
	view := NewView(streams).WithScreen(func(event record.Event, width int) []string {
		if width != 39 {
			t.Errorf("width %d", width)
		}
		return strings.Split(event.Message, "|")
	})
	view.live = true
	view.Event(at(0, "target", "the server answers"))
	view.Event(step(1, "one|two|three", 1, 10))
	view.Event(step(2, "FOUR|five", 2, 10))
	view.Event(at(0, "case", "case 1 is over"))
	if got, want := terminal(t, 40, stderr.String()), []string{"  the server answers", "  case 1 is over", "FOUR", "five", ""}; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("on the screen: %q", got)
	}
	view.Waiting("pod b is not scheduled")
	view.Event(step(3, "six", 3, 10))
	view.Event(at(9, record.EventDone, "done"))
	if got, want := terminal(t, 40, stderr.String()), []string{"  the server answers", "  case 1 is over", "  pod b is not scheduled", ""}; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("in the end: %q", got)
	}
	if strings.Contains(stderr.String(), "\x1b[2J") {
		t.Error("the whole screen is cleared: that flickers")
	}
}

// A terminal that was made narrower has wrapped the painting.
func TestPaintingRows(t *testing.T) {
	painted := painting{widths: []int{80, 0, 41, 40}}
	for width, want := range map[int]int{100: 4, 80: 4, 40: 6, 20: 10} {
		if got := painted.rows(width); got != want {
			t.Errorf("width %d: %d rows, want %d", width, got, want)
		}
	}
}

// Lines of who has a screen come every ten seconds where there is no terminal.
func TestViewLinesOfScreen(t *testing.T) {
	streams, stderr := buffers()
	view := NewView(streams).WithScreen(func(record.Event, int) []string { return []string{"never drawn"} })
	for i := range 60 {
		view.Event(step(i, "under way", float64(i), 60))
	}
	view.Close()
	if got := strings.Count(stderr.String(), "under way\n"); got != 6 || strings.Contains(stderr.String(), "\x1b") {
		t.Errorf("%d lines: %q", got, stderr.String())
	}
}
