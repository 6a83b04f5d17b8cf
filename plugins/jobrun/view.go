package jobrun

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// Steps of progress that are worth a line where no line can be rewritten. Who
// has a Screen has much to tell, and is told more often.
const (
	lineEvery   = 30 * time.Second
	linePercent = 10.0
	screenEvery = 10 * time.Second
)

const (
	barWidth = 24
	// leastBar is the narrowest bar that still says something. Where the words
	// leave less, there is none: they say more.
	leastBar     = 6
	defaultWidth = 80
)

// View shows a job's events on standard error: on a terminal, progress
// rewrites one line, or what the command's Screen draws; elsewhere it is a line
// at every tenth or half minute.
type View struct {
	streams *term.Streams
	screen  Screen // nil for one line
	live    bool
	lines   []string // that the screen drew last
	painted painting
	open    bool // a progress line is on the screen
	percent float64
	shown   time.Time
	// wide is the bar's width. It shrinks only, or it would dance as the words
	// get longer and shorter.
	wide int
}

// NewView makes the View of one job.
func NewView(streams *term.Streams) *View {
	return &View{streams: streams, live: streams.ErrCanMove(), percent: math.Inf(-1), wide: barWidth}
}

// WithScreen makes the View draw progress with a Screen; nil changes nothing.
func (v *View) WithScreen(screen Screen) *View {
	v.screen = screen
	return v
}

// Event implements Observer.
func (v *View) Event(event record.Event) {
	switch event.Name {
	case record.EventProgress:
		v.progress(event)
	case record.EventDone, record.EventFailed:
		v.Close()
	default:
		v.line(event)
	}
}

// Waiting implements Observer.
func (v *View) Waiting(reason string) {
	v.end()
	v.say(reason)
	v.repaint()
}

// Close ends the progress that is on the screen: a line stays, a painting gives
// way to what comes next.
func (v *View) Close() {
	v.end()
	v.lines = nil
}

func (v *View) end() {
	v.clear()
	if v.open {
		fmt.Fprintln(v.streams.ErrWriter())
		v.open = false
	}
}

// say writes one line below the command's own.
func (v *View) say(text string) { fmt.Fprintln(v.streams.Err, "  "+failure.Clean(text)) }

func (v *View) line(event record.Event) {
	v.end()
	defer v.repaint()
	text := failure.Clean(event.Message)
	switch event.Level {
	case record.Warning:
		text = term.Caution("warning: ") + text
	case record.Problem:
		text = term.Bad("error: ") + text
	}
	fmt.Fprintln(v.streams.Err, "  "+text)
}

func (v *View) progress(event record.Event) {
	percent, known := share(event)
	if !v.live {
		due := event.Time.Sub(v.shown) >= lineEvery
		if v.screen != nil {
			due = event.Time.Sub(v.shown) >= screenEvery
		} else if known {
			due = due || percent >= v.percent+linePercent
		}
		if !due {
			return
		}
		v.percent, v.shown = percent, event.Time
		v.say(event.Message)
		return
	}
	if v.screen != nil {
		if lines := v.screen(event, v.width()-1); len(lines) > 0 {
			v.lines = lines
			v.paint(lines, v.width())
			return
		}
	}
	// The last column stays free: some terminals wrap when it is written.
	room := max(0, v.width()-3)
	line := failure.Clean(event.Message)
	if known {
		line = fmt.Sprintf("%3.0f%% %s", percent, line)
		if v.wide = min(v.wide, room-utf8.RuneCountInString(line)-len("[] ")); v.wide >= leastBar {
			filled := int(math.Round(percent / 100 * float64(v.wide)))
			line = fmt.Sprintf("[%s%s] %s", strings.Repeat("=", filled), strings.Repeat(" ", v.wide-filled), line)
		} else {
			line = strings.TrimSpace(line)
		}
	}
	if runes := []rune(line); len(runes) > room {
		line = string(runes[:room])
	}
	fmt.Fprintf(v.streams.ErrWriter(), "\r  %s\x1b[K", line)
	v.open = true
}

// share returns how much is done, in percent.
func share(event record.Event) (float64, bool) {
	if event.Done == nil || event.Total == nil || *event.Total <= 0 {
		return 0, false
	}
	return max(0, min(100, 100**event.Done / *event.Total)), true
}
