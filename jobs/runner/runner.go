// Package runner is the frame around a Job's work: it takes the plan from the
// environment, writes one JSON event a line, and leaves the outcome as last
// event, as termination message and as exit code.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// PlanEnv is the environment variable that holds the plan.
const PlanEnv = "INFERENCE_PLAN"

// maxMessage bounds the termination message; Kubernetes cuts at 4096 bytes.
const maxMessage = 4000

// Process is what a run needs of the process around it.
type Process struct {
	Stdout io.Writer
	Getenv func(string) string
	// TerminationMessage is the file that Kubernetes reads a container's last
	// words from; "" writes none.
	TerminationMessage string
	Version            string
}

// Work does a Job's work and returns its result document.
type Work func(ctx context.Context, process Process, plan []byte, emit func(record.Event)) (any, error)

// Works are the subcommands of inference-job.
func Works() map[string]Work {
	return map[string]Work{"sync": runSync, "verify": runVerify, "prune": runPrune, "bench": runBench, "rollout": runRollout, "hold": runHold}
}

// Execute runs `inference-job COMMAND` and returns the exit code.
func Execute(ctx context.Context, args []string, process Process) int {
	emit := emitter(process.Stdout)
	if len(args) == 1 && (args[0] == "version" || args[0] == "--version") {
		fmt.Fprintln(process.Stdout, "inference-job", process.Version)
		return 0
	}
	work, plan, err := read(args, process)
	var result any
	if err == nil {
		process.Getenv, err = tidy(process.Getenv, emit, keysOf(plan)...)
	}
	if err == nil {
		result, err = work(ctx, process, plan, emit)
	}
	event := outcome(result, stopped(ctx, err))
	emit(event)
	sayLast(process.TerminationMessage, event, result)
	return event.ExitCode
}

// stopped turns what a cancelled work returns into one error, whatever it was
// doing; other errors are left as they are.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return failure.New(failure.Interrupted, "", "stopped by a signal")
	}
	return err
}

func read(args []string, process Process) (Work, []byte, error) {
	const hint = "inference-job is started by `kubectl inference sync-model | bench | rollout`"
	if len(args) != 1 {
		return nil, nil, failure.New(failure.Usage, hint, "read arguments: one command is needed: sync, verify, prune, bench or rollout")
	}
	work, ok := Works()[args[0]]
	if !ok {
		return nil, nil, failure.New(failure.Usage, hint, "read arguments: %q is not a command", args[0])
	}
	plan := process.Getenv(PlanEnv)
	if plan == "" {
		return nil, nil, failure.New(failure.Usage, hint, "read plan: %s is not set", PlanEnv)
	}
	return work, []byte(plan), nil
}

// emitter returns a function that writes events as lines, from any goroutine.
func emitter(w io.Writer) func(record.Event) {
	var mutex sync.Mutex
	var last time.Time
	return func(event record.Event) {
		mutex.Lock()
		defer mutex.Unlock()
		if event.Time.IsZero() {
			event.Time = time.Now()
		}
		// Followers tell events apart by their time.
		if !event.Time.After(last) {
			event.Time = last.Add(time.Nanosecond)
		}
		event.Time = event.Time.UTC()
		last = event.Time
		if event.Level == "" {
			event.Level = record.Info
		}
		line, err := json.Marshal(event)
		if err != nil {
			// A number that JSON does not have; the words are what matters.
			event.Done, event.Total, event.Fields = nil, nil, nil
			line, _ = json.Marshal(event)
		}
		w.Write(append(line, '\n'))
	}
}

// outcome is the last event of a run. A result that cannot be written is a
// failure: nobody would ever see it.
func outcome(result any, err error) record.Event {
	event := record.Event{Time: time.Now().UTC(), Level: record.Info, Name: record.EventDone, Message: "done"}
	if result != nil {
		var resultErr error
		if event.Result, resultErr = json.Marshal(result); resultErr != nil {
			err = errors.Join(err, fmt.Errorf("write result: %w", resultErr))
		}
	}
	if err != nil {
		event.Level, event.Name = record.Problem, record.EventFailed
		event.Message, event.Hint, event.ExitCode = failure.Clean(err.Error()), failure.HintOf(err), failure.ExitCode(err)
	}
	return event
}

// brief is a result that has a shorter form without its lists.
type brief interface{ Brief() any }

// sayLast leaves the outcome where it outlives the pod's log. Of one that is
// too large, the result is cut short or left out, and then the end of its words.
func sayLast(file string, event record.Event, result any) {
	if file == "" {
		return
	}
	message, err := json.Marshal(event)
	if long, ok := result.(brief); ok && err == nil && len(message) > maxMessage {
		if event.Result, err = json.Marshal(long.Brief()); err == nil {
			message, err = json.Marshal(event)
		}
	}
	if err != nil || len(message) > maxMessage {
		event.Result = nil
		message, _ = json.Marshal(event)
	}
	for len(message) > maxMessage {
		event.Message, event.Hint = half(event.Message), half(event.Hint)
		message, _ = json.Marshal(event)
	}
	// Without the file there is nobody to tell: the event is in the log too.
	_ = os.WriteFile(file, message, 0o600)
}

// half returns the first half of a text that is not short.
func half(text string) string {
	const short = 64
	if runes := []rune(text); len(runes) > short {
		return string(runes[:len(runes)/2]) + "..."
	}
	return text
}

func decode[T any](data []byte, kind string) (T, error) {
	var plan T
	err := record.Decode(data, kind, &plan)
	return plan, err
}
