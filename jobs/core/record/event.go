package record

import (
	"encoding/json"
	"time"
)

// Level says how much an Event matters.
type Level string

const (
	Info    Level = "info"
	Warning Level = "warning"
	Problem Level = "error"
)

// Event is one thing that a job reports while it works. A job writes one JSON
// line an event to its standard output; the plugin follows that stream and
// renders the same events for people.
type Event struct {
	Time  time.Time `json:"time"`
	Level Level     `json:"level"`
	// Name is a stable word for programs, such as "plan", "progress", "case".
	Name string `json:"event"`
	// Message is the whole event for people, in one line.
	Message string `json:"message"`
	// Done and Total measure progress in Unit; Total is nil where unknown.
	Done  *float64 `json:"done,omitempty"`
	Total *float64 `json:"total,omitempty"`
	Unit  string   `json:"unit,omitempty"`
	// Fields holds what the event is about, by name.
	Fields map[string]any `json:"fields,omitempty"`
	// ExitCode and Hint are set on the last event of a failed job.
	ExitCode int    `json:"exit_code,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Result is set on the last event of a job that succeeded: its document.
	Result json.RawMessage `json:"result,omitempty"`
}

// Names of the events that programs look for: those of every job, and those of a
// sync.
const (
	EventProgress = "progress"
	EventDone     = "done"
	EventFailed   = "failed"

	EventPlan  = "plan"
	EventFile  = "file"
	EventRetry = "retry"
)

// ParseEvent reads one line of a job's output. ok is false for a line that is
// not an event, such as a message of the Go runtime.
func ParseEvent(line []byte) (event Event, ok bool) {
	if err := json.Unmarshal(line, &event); err != nil || event.Name == "" || event.Time.IsZero() {
		return Event{}, false
	}
	return event, true
}
