package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// load is one group of cases, from the flags or from a file: every combination
// of its lengths and its loads is a case.
type load struct {
	Name         string        `json:"name"`
	PromptTokens list          `json:"prompt_tokens"`
	OutputTokens list          `json:"output_tokens"`
	Concurrency  list          `json:"concurrency"`
	Requests     int           `json:"requests"`
	Duration     span          `json:"duration"`
	Arrival      *arrival      `json:"arrival"`
	SharedPrefix *sharedPrefix `json:"shared_prefix"`
	Sessions     *sessions     `json:"sessions"`
	// Stream is one choice or both; empty is the plan's.
	Stream []bool `json:"stream"`
}

type arrival struct {
	Process     string  `json:"process"`
	Rate        list    `json:"rate"`
	Burstiness  float64 `json:"burstiness"`
	Stages      string  `json:"stages"`
	Trace       string  `json:"trace"`
	TraceSpeed  float64 `json:"trace_speed"`
	MaxInFlight int     `json:"max_in_flight"`
}

type sharedPrefix struct {
	Tokens int `json:"tokens"`
	Groups int `json:"groups"`
}

type sessions struct {
	Turns            int  `json:"turns"`
	NewTokens        int  `json:"new_tokens"`
	Think            span `json:"think"`
	ThinkExponential bool `json:"think_exponential"`
}

// list is one value or several: 5, "1,5,10" or [1, 5, 10].
type list []string

func (l *list) UnmarshalJSON(data []byte) error {
	var values []json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		values = []json.RawMessage{data}
	}
	*l = nil
	for _, raw := range values {
		var text string
		var number json.Number
		switch {
		case json.Unmarshal(raw, &text) == nil:
			*l = append(*l, split(text)...)
		case json.Unmarshal(raw, &number) == nil:
			*l = append(*l, number.String())
		default:
			return fmt.Errorf("%s is neither a number nor a text", raw)
		}
	}
	return nil
}

func split(texts ...string) list {
	var values list
	for _, text := range texts {
		for _, value := range strings.Split(text, ",") {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

// span is a duration as people write it: 30s.
type span time.Duration

func (s *span) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is not a time such as 30s", data)
	}
	d, err := time.ParseDuration(text)
	*s = span(d)
	return err
}

// cases expands the group, in the order in which its cases run.
func (l load) cases(warmup time.Duration) ([]record.BenchCase, error) {
	base := record.BenchCase{Requests: l.Requests, DurationSeconds: time.Duration(l.Duration).Seconds()}
	if p := l.SharedPrefix; p != nil {
		base.SharedPrefix = &workload.SharedPrefix{Tokens: p.Tokens, Groups: p.Groups}
	}
	if s := l.Sessions; s != nil {
		base.Sessions = &workload.Sessions{Turns: s.Turns, NewTokens: s.NewTokens, ThinkSeconds: time.Duration(s.Think).Seconds(), ThinkExponential: s.ThinkExponential}
	}
	if l.Arrival != nil && l.Arrival.Trace != "" {
		one, err := l.traced(base, warmup)
		return []record.BenchCase{one}, err
	}
	loads, err := l.loads(base)
	if err != nil {
		return nil, err
	}
	all := []record.BenchCase{}
	for _, prompt := range l.PromptTokens {
		for _, output := range l.OutputTokens {
			for _, one := range loads {
				p, err := workload.ParseLengths(prompt)
				if err != nil {
					return nil, err
				}
				o, err := workload.ParseLengths(output)
				if err != nil {
					return nil, err
				}
				one.PromptTokens, one.OutputTokens = p.Typical(), o.Typical()
				if p.Kind != workload.LengthFixed {
					one.PromptLengths = &p
				}
				if o.Kind != workload.LengthFixed {
					one.OutputLengths = &o
				}
				one.Name = fmt.Sprintf("%s-%s-%s", label(p), label(o), one.Name)
				all = append(all, one)
			}
		}
	}
	all = l.streamed(all)
	for i := range all {
		switch {
		case l.Name != "" && len(all) == 1:
			all[i].Name = l.Name
		case l.Name != "":
			all[i].Name = l.Name + "-" + all[i].Name
		}
	}
	return all, nil
}

// streamed gives each case its choices of streaming, and names them by it where
// there are both.
func (l load) streamed(cases []record.BenchCase) []record.BenchCase {
	if len(l.Stream) == 0 {
		return cases
	}
	var all []record.BenchCase
	for _, stream := range l.Stream {
		for _, one := range cases {
			one.Stream = &stream
			if len(l.Stream) > 1 && stream {
				one.Name += "-stream"
			} else if len(l.Stream) > 1 {
				one.Name += "-whole"
			}
			all = append(all, one)
		}
	}
	return all
}

func label(l workload.Lengths) string {
	if l.Kind == workload.LengthFixed {
		return strconv.Itoa(l.Typical())
	}
	return l.Kind + strconv.Itoa(l.Typical())
}

// loads are the cases without lengths, named by their load.
func (l load) loads(base record.BenchCase) ([]record.BenchCase, error) {
	var all []record.BenchCase
	if l.Arrival == nil {
		for _, text := range l.Concurrency {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, failure.New(failure.Usage, "give whole numbers joined by commas, such as 1,5,10", "read --concurrency: %q is not a whole number", text)
			}
			one := base
			one.Concurrency, one.Name = n, fmt.Sprintf("c%d", n)
			all = append(all, one)
		}
		return all, nil
	}
	if len(l.Concurrency) > 0 {
		return nil, failure.New(failure.Usage, "a closed loop keeps requests in flight, an open one has a rate: measure them as two cases", "read load: concurrency and a rate exclude one another")
	}
	a := workload.Arrival{Process: l.Arrival.Process, Burstiness: l.Arrival.Burstiness, MaxInFlight: l.Arrival.MaxInFlight}
	if a.Process == "" {
		a.Process = workload.Poisson
	}
	if l.Arrival.Stages != "" {
		stages, err := workload.ParseStages(l.Arrival.Stages)
		if err != nil {
			return nil, err
		}
		if len(l.Arrival.Rate) > 0 {
			return nil, failure.New(failure.Usage, "the stages have their own rates", "read load: rate and stages exclude one another")
		}
		one := base
		a.Stages = stages
		one.Arrival, one.Name = &a, a.Process+"-stages"
		if one.DurationSeconds == 0 {
			one.DurationSeconds = a.Seconds()
		}
		return []record.BenchCase{one}, nil
	}
	for _, text := range l.Arrival.Rate {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, failure.New(failure.Usage, "give requests a second, such as 0.5,1,2", "read --rate: %q is not a number", text)
		}
		one, at := base, a
		at.Rate = rate
		one.Arrival, one.Name = &at, fmt.Sprintf("%s-r%s", a.Process, text)
		all = append(all, one)
	}
	return all, nil
}

// traced reads a trace into a case. Its first part, as long as the warm-up, is
// sent and not measured.
func (l load) traced(base record.BenchCase, warmup time.Duration) (record.BenchCase, error) {
	a := l.Arrival
	if a.Stages != "" || len(a.Rate) > 0 || a.Process != "" && a.Process != workload.Replay || len(l.Concurrency) > 0 {
		return base, failure.New(failure.Usage, "a trace says when each request comes; play it faster with --trace-speed", "read load: a trace takes no other load")
	}
	file, err := os.Open(a.Trace)
	if err != nil {
		return base, failure.New(failure.Usage, "", "read trace: %w", withoutOp(err))
	}
	defer file.Close() //nolint:errcheck // it was only read
	trace, skipped, err := workload.ParseTrace(file)
	if err != nil {
		return base, failure.Wrap(err, "%s", a.Trace)
	}
	if a.TraceSpeed != 0 {
		if !(a.TraceSpeed > 0) {
			return base, failure.New(failure.Usage, "2 plays it twice as fast", "read --trace-speed: %v is not above 0", a.TraceSpeed)
		}
		trace = trace.Scale(a.TraceSpeed)
	}
	if base.DurationSeconds == 0 {
		base.DurationSeconds = max(trace.Seconds()-warmup.Seconds(), 0.001)
	}
	trace = trace.Head(warmup.Seconds() + base.DurationSeconds)
	base.Arrival = &workload.Arrival{Process: workload.Replay, Trace: &trace, MaxInFlight: a.MaxInFlight}
	base.PromptTokens, base.OutputTokens = meanOf(trace.PromptTokens), meanOf(trace.OutputTokens)
	base.Name = l.Name
	if base.Name == "" {
		base.Name = "trace-" + strings.TrimSuffix(filepath.Base(a.Trace), filepath.Ext(a.Trace))
	}
	if skipped > 0 {
		base.Name += fmt.Sprintf("-without-%d", skipped)
	}
	return base, nil
}

func meanOf(values []int) int {
	sum := 0
	for _, v := range values {
		sum += v
	}
	return max(sum/max(len(values), 1), 1)
}

// withoutOp is the cause of a file error without the system call's name.
func withoutOp(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}

// readAll reads a file, or standard input for "-", up to a limit.
func readAll(name string, in io.Reader, limit int64) ([]byte, error) {
	reader := in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, withoutOp(err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		reader = file
	}
	if reader == nil {
		return nil, errors.New("there is no standard input")
	}
	data, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d KiB", limit>>10)
	}
	return data, withoutOp(err)
}

// describe says for people what load a case is.
func describe(c record.BenchCase) string {
	switch a := c.Arrival; {
	case a == nil && c.Sessions != nil:
		return fmt.Sprintf("%d sessions of %d turns", c.Concurrency, c.Sessions.Turns)
	case a == nil:
		return strconv.Itoa(c.Concurrency)
	case a.Trace != nil:
		return fmt.Sprintf("%d traced", len(a.Trace.AtSeconds))
	case len(a.Stages) > 0:
		rates := []float64{}
		for _, stage := range a.Stages {
			rates = append(rates, stage.FromRate, stage.ToRate)
		}
		return fmt.Sprintf("%s %g-%g/s", a.Process, slices.Min(rates), slices.Max(rates))
	default:
		return fmt.Sprintf("%s %g/s", a.Process, a.Rate)
	}
}
