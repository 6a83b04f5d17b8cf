package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// event is one line of what the inside of the lab tells the outside, as JSON.
type event struct {
	// Step and Seconds are a step that is done.
	Step    string  `json:"step,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Ready is the last event of a start that went well.
	Ready bool `json:"ready,omitempty"`
	// Error is the last of one that did not; Hint and Tail go with it.
	Error string       `json:"error,omitempty"`
	Kind  failure.Kind `json:"kind,omitempty"`
	Hint  string       `json:"hint,omitempty"`
	Tail  string       `json:"tail,omitempty"`
}

// Report tells the steps of a start, one line each with its duration. Steps may
// run at the same time. It is safe for concurrent use.
type Report struct {
	mu     sync.Mutex
	out    io.Writer
	now    func() time.Time
	events bool
	// quick steps, such as a build that has nothing to do, are left out.
	quick time.Duration
}

// NewReport tells people.
func NewReport(out io.Writer, now func() time.Time) *Report {
	return &Report{out: out, now: now, quick: 100 * time.Millisecond}
}

// newEvents tells the process that started the lab.
func newEvents(out io.Writer, now func() time.Time) *Report {
	return &Report{out: out, now: now, events: true}
}

// Step runs one step and reports it.
func (r *Report) Step(ctx context.Context, name string, run func(context.Context) error) error {
	start := r.now()
	if err := run(ctx); err != nil {
		return err
	}
	return r.done(name, r.now().Sub(start))
}

// done reports a step that took so long.
func (r *Report) done(name string, took time.Duration) error {
	if r.events {
		return r.send(event{Step: name, Seconds: took.Seconds()})
	}
	if took >= r.quick {
		r.Note("%-28s %6.1fs", name, took.Seconds())
	}
	return nil
}

// Note reports a line of its own.
func (r *Report) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Progress that cannot be written is no reason to stop.
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// send writes an event. When it cannot, whoever started the lab has gone, and
// the start must end.
func (r *Report) send(e event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.NewEncoder(r.out).Encode(e); err != nil {
		return fmt.Errorf("report progress: %w", err)
	}
	return nil
}

// fail sends an error with all that belongs to it.
func (r *Report) fail(err error) error {
	return r.send(event{Error: err.Error(), Kind: failure.KindOf(err), Hint: failure.HintOf(err), Tail: process.TailOf(err)})
}

// failed is the error of an event, as it was inside.
func (e event) failed() error {
	err := error(&process.Silent{Err: fmt.Errorf("%s", e.Error), Tail: e.Tail})
	return failure.New(e.Kind, e.Hint, "start lab: %w", err)
}
