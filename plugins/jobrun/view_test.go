package jobrun

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

func step(i int, message string, done, total float64) record.Event {
	event := at(0, record.EventProgress, message)
	event.Time = epoch.Add(time.Duration(i) * time.Second)
	event.Done = &done
	if total > 0 {
		event.Total = &total
	}
	return event
}

// story is one job from its first word to its last.
func story(view *View) {
	view.Waiting("pod a is not scheduled: 0/1 nodes\nare available \x1b[31m")
	view.Event(at(0, "plan", "12 files, 4 GiB"))
	// Every second one percent.
	for i := range 101 {
		view.Event(step(i, fmt.Sprintf("%d of 100 MiB, 1 MiB/s", i), float64(i), 100))
	}
	warning := at(0, "retry", "the Hub asks to wait 3 s")
	warning.Level = record.Warning
	view.Event(warning)
	// Where the total is not known: every half minute.
	for i := range 70 {
		view.Event(step(200+i, fmt.Sprintf("%d files listed", i), float64(i), 0))
	}
	problem := at(0, "case", "the server \u202eended the stream")
	problem.Level = record.Problem
	view.Event(problem)
	view.Event(step(300, "a message that is much too long for the width of this terminal and is cut at its right edge", 120, 100))
	view.Event(at(1, record.EventDone, "done"))
	view.Close()
}

func TestView(t *testing.T) {
	for name, test := range map[string]struct {
		live    bool
		environ []string
	}{
		"view.txt":       {false, nil},
		"view-live.txt":  {true, []string{"COLUMNS=60"}},
		"view-color.txt": {false, []string{"CLICOLOR_FORCE=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			streams, stderr := buffers(test.environ...)
			view := NewView(streams)
			if view.live {
				t.Error("a buffer is taken for a terminal")
			}
			view.live = test.live
			story(view)
			golden.Compare(t, name, stderr.String())
		})
	}
}

// TestViewOnANarrowTerminal: no width makes it fail.
func TestViewOnANarrowTerminal(t *testing.T) {
	for width := range 8 {
		streams, stderr := buffers(fmt.Sprintf("COLUMNS=%d", width))
		view := NewView(streams)
		view.live = true
		view.Event(step(1, "half", 1, 2))
		view.Close()
		if stderr.Len() == 0 {
			t.Errorf("nothing is shown on %d columns", width)
		}
	}
}

// TestViewBar: the words say more than the bar, which gives way to them.
func TestViewBar(t *testing.T) {
	const message = "1.1 GiB of 2.2 GiB, 3 of 9 files, 95 MiB/s, 12s left"
	for width, want := range map[int]string{
		200: "[============            ]  50% " + message,
		80:  "[=========        ]  50% " + message,
		69:  "[===   ]  50% " + message,
		// Here a bar would have five columns.
		68: "50% " + message,
		60: "50% " + message,
		20: "50% 1.1 GiB of 2.",
	} {
		streams, stderr := buffers(fmt.Sprintf("COLUMNS=%d", width))
		view := NewView(streams)
		view.live = true
		view.Event(step(1, message, 1, 2))
		view.Close()
		if got := stderr.String(); got != "\r  "+want+"\x1b[K\n" {
			t.Errorf("%d columns: %q", width, got)
		}
	}
}
