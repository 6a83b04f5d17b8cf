package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// TraceBlock is the number of prompt tokens that one hash id of a Mooncake trace
// stands for.
const TraceBlock = 512

// Trace is recorded load: when each request came and how long it was. Equal
// hash ids at the beginning of two requests are a common prefix.
type Trace struct {
	AtSeconds    []float64  `json:"at_seconds"`
	PromptTokens []int      `json:"prompt_tokens"`
	OutputTokens []int      `json:"output_tokens"`
	HashIDs      [][]uint64 `json:"hash_ids,omitempty"`
}

// entry is one request of a trace.
type entry struct {
	at             float64
	prompt, output int
	hashes         []uint64
}

// ParseTrace reads a trace in the format of Mooncake (JSON lines with timestamp
// in ms, input_length, output_length, hash_ids) or of Azure's LLM inference
// traces (CSV with TIMESTAMP, ContextTokens, GeneratedTokens); which, its first
// byte tells. Times are after the first request. Requests without prompt or
// output tokens, which failed when they were recorded, are left out and counted.
func ParseTrace(r io.Reader) (trace Trace, skipped int, err error) {
	reader := bufio.NewReader(r)
	first, err := reader.Peek(1)
	if err != nil {
		return Trace{}, 0, traceError(errors.New("it is empty"))
	}
	var entries []entry
	if first[0] == '{' {
		entries, err = readMooncake(reader)
	} else {
		entries, err = readAzure(reader)
	}
	if err != nil {
		return Trace{}, 0, traceError(err)
	}
	kept := slices.DeleteFunc(entries, func(e entry) bool { return e.prompt < 1 || e.output < 1 })
	skipped = len(entries) - len(kept)
	if len(kept) == 0 {
		return Trace{}, skipped, traceError(errors.New("it has no request"))
	}
	// Recorders write in the order of completion too.
	slices.SortStableFunc(kept, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	hashes := false
	for _, e := range kept {
		trace.AtSeconds = append(trace.AtSeconds, e.at-kept[0].at)
		trace.PromptTokens, trace.OutputTokens = append(trace.PromptTokens, e.prompt), append(trace.OutputTokens, e.output)
		trace.HashIDs = append(trace.HashIDs, e.hashes)
		hashes = hashes || len(e.hashes) > 0
	}
	if !hashes {
		trace.HashIDs = nil
	}
	return trace, skipped, trace.Validate()
}

func traceError(cause error) error {
	return failure.New(failure.Usage, "it must be JSON lines with timestamp (ms), input_length, output_length (Mooncake), or CSV with TIMESTAMP,ContextTokens,GeneratedTokens (Azure)", "read trace: %w", cause)
}

func readMooncake(r *bufio.Reader) ([]entry, error) {
	var entries []entry
	for line := 1; ; line++ {
		text, readErr := r.ReadBytes('\n')
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var one struct {
				Timestamp *float64 `json:"timestamp"`
				Input     *int     `json:"input_length"`
				Output    *int     `json:"output_length"`
				HashIDs   []uint64 `json:"hash_ids"`
			}
			if err := json.Unmarshal(text, &one); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			if one.Timestamp == nil || one.Input == nil || one.Output == nil {
				return nil, fmt.Errorf("line %d: timestamp, input_length or output_length is missing", line)
			}
			entries = append(entries, entry{*one.Timestamp / 1000, *one.Input, *one.Output, one.HashIDs})
		}
		if errors.Is(readErr, io.EOF) {
			return entries, nil
		}
		if readErr != nil {
			return nil, readErr
		}
	}
}

// azureTimes are the layouts of the traces of 2023 and of 2024.
var azureTimes = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339}

func readAzure(r io.Reader) ([]entry, error) {
	rows := csv.NewReader(r)
	head, err := rows.Read()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range head {
		column[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))] = i
	}
	var at [3]int
	for i, name := range []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"} {
		found, ok := column[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Errorf("there is no column %s", name)
		}
		at[i] = found
	}
	var entries []entry
	var origin time.Time
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		stamp, err := parseTime(strings.TrimSpace(row[at[0]]))
		if err != nil {
			return nil, fmt.Errorf("line %d: %q is not a time", line, row[at[0]])
		}
		if origin.IsZero() {
			origin = stamp
		}
		prompt, err1 := strconv.Atoi(strings.TrimSpace(row[at[1]]))
		output, err2 := strconv.Atoi(strings.TrimSpace(row[at[2]]))
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("line %d: a number of tokens is not a whole number", line)
		}
		entries = append(entries, entry{at: stamp.Sub(origin).Seconds(), prompt: prompt, output: output})
	}
}

func parseTime(text string) (stamp time.Time, err error) {
	for _, layout := range azureTimes {
		if stamp, err = time.Parse(layout, text); err == nil {
			return stamp, nil
		}
	}
	return stamp, err
}

// Scale returns the trace played at a multiple of its speed: 2 halves every gap.
func (t Trace) Scale(speed float64) Trace {
	at := make([]float64, len(t.AtSeconds))
	for i, seconds := range t.AtSeconds {
		at[i] = seconds / speed
	}
	t.AtSeconds = at
	return t
}

// Head returns the requests of the first seconds.
func (t Trace) Head(seconds float64) Trace {
	n, _ := slices.BinarySearch(t.AtSeconds, seconds)
	t.AtSeconds, t.PromptTokens, t.OutputTokens = t.AtSeconds[:n], t.PromptTokens[:n], t.OutputTokens[:n]
	if t.HashIDs != nil {
		t.HashIDs = t.HashIDs[:n]
	}
	return t
}

// Seconds is the time from the first request to just after the last one.
func (t Trace) Seconds() float64 {
	if len(t.AtSeconds) == 0 {
		return 0
	}
	return t.AtSeconds[len(t.AtSeconds)-1] + 0.001
}

// Validate refuses a trace whose parts do not fit together.
func (t Trace) Validate() error {
	n := len(t.AtSeconds)
	switch {
	case n == 0:
		return errors.New("the trace has no request")
	case len(t.PromptTokens) != n || len(t.OutputTokens) != n || t.HashIDs != nil && len(t.HashIDs) != n:
		return errors.New("the trace's columns are of different length")
	case !slices.IsSorted(t.AtSeconds) || t.AtSeconds[0] < 0:
		return errors.New("the trace's times are not in order")
	case slices.Min(t.PromptTokens) < 1 || slices.Min(t.OutputTokens) < 1 || slices.Max(t.PromptTokens) > MaxLength || slices.Max(t.OutputTokens) > MaxLength:
		return errors.New("the trace has a length that is not possible")
	}
	return nil
}
