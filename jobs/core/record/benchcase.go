package record

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// MaxConcurrency is the largest number of requests in flight of one process: it
// has one connection for each, and an address has no more than 28,000 ports to
// dial from.
const MaxConcurrency = 20_000

// BenchCase is one operating point: a token shape at one load. The load is a
// closed loop (Concurrency) or an open one (Arrival).
type BenchCase struct {
	Name string `json:"name"`
	// PromptTokens and OutputTokens are the exact lengths of each request; where
	// there are PromptLengths, OutputLengths or a trace, what is typical of them.
	PromptTokens int `json:"prompt_tokens"`
	OutputTokens int `json:"output_tokens"`
	// Concurrency is the number of requests in flight (closed loop), or of
	// sessions; 0 in an open loop.
	Concurrency int `json:"concurrency"`
	// Requests ends a closed loop after so many measured requests or sessions,
	// if the time is not over before; 0 leaves it to the time.
	Requests int `json:"requests,omitempty"`
	// Arrival makes the case an open loop: its requests are due at times that
	// do not depend on the answers.
	Arrival *workload.Arrival `json:"arrival,omitempty"`
	// DurationSeconds is the case's own measured time; 0 is the plan's.
	DurationSeconds float64 `json:"duration_seconds,omitempty"`
	// WarmupSeconds is the case's own warm-up; 0 is the plan's.
	WarmupSeconds float64 `json:"warmup_seconds,omitempty"`
	// PromptLengths and OutputLengths are distributions in place of one length.
	PromptLengths *workload.Lengths `json:"prompt_lengths,omitempty"`
	OutputLengths *workload.Lengths `json:"output_lengths,omitempty"`
	// SharedPrefix and Sessions make prompts begin alike on purpose.
	SharedPrefix *workload.SharedPrefix `json:"shared_prefix,omitempty"`
	Sessions     *workload.Sessions     `json:"sessions,omitempty"`
	// Repeat counts the runs of one load after the first: 2 is the second.
	Repeat int `json:"repeat,omitempty"`
	// Stop is the case's own rules of ending early; nil is the plan's. Reason is
	// why the case is there, where a search chose it.
	Stop   *StopRules `json:"stop,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Stream is the case's own choice; nil is the plan's.
	Stream *bool `json:"stream,omitempty"`
}

// Streams says whether the answers of a case are streamed.
func (p BenchPlan) Streams(c BenchCase) bool {
	if c.Stream != nil {
		return *c.Stream
	}
	return p.Stream
}

// Shape names the token shape of a case, as in "1024/128"; a ~ marks a
// distribution by what is typical of it.
func (c BenchCase) Shape() string {
	about := func(varies bool) string {
		if varies || c.trace() != nil {
			return "~"
		}
		return ""
	}
	return fmt.Sprintf("%s%d/%s%d", about(c.PromptLengths != nil || c.Sessions != nil), c.PromptTokens, about(c.OutputLengths != nil), c.OutputTokens)
}

// Open says whether the case is an open loop.
func (c BenchCase) Open() bool { return c.Arrival != nil }

func (c BenchCase) trace() *workload.Trace {
	if c.Arrival == nil {
		return nil
	}
	return c.Arrival.Trace
}

// Mix is what the requests of the case look like.
func (c BenchCase) Mix() workload.Mix {
	mix := workload.Mix{
		Prompt: workload.Fixed(c.PromptTokens), Output: workload.Fixed(c.OutputTokens),
		Shared: c.SharedPrefix, Sessions: c.Sessions, Trace: c.trace(),
	}
	if c.PromptLengths != nil {
		mix.Prompt = *c.PromptLengths
	}
	if c.OutputLengths != nil {
		mix.Output = *c.OutputLengths
	}
	return mix
}

// Seconds is the measured time of a case of the plan.
func (p BenchPlan) Seconds(c BenchCase) float64 {
	if c.DurationSeconds > 0 {
		return c.DurationSeconds
	}
	return p.DurationSeconds
}

// Warmup is the warm-up of a case of the plan in seconds.
func (p BenchPlan) Warmup(c BenchCase) float64 {
	if c.WarmupSeconds > 0 {
		return c.WarmupSeconds
	}
	return p.WarmupSeconds
}

// validate refuses a case that cannot be carried out.
func (c BenchCase) validate(p BenchPlan) error {
	refuse := func(hint, format string, args ...any) error {
		return failure.New(failure.Usage, hint, "read bench plan: case %q: "+format, append([]any{c.Name}, args...)...)
	}
	switch {
	case c.PromptTokens < 1 || c.OutputTokens < 1:
		return refuse("a prompt has a token at least, and so has an answer", "prompt_tokens and output_tokens must be 1 or more")
	case c.DurationSeconds < 0 || c.WarmupSeconds < 0 || c.Requests < 0:
		return refuse("", "duration_seconds, warmup_seconds or requests is below 0")
	case c.Open() && c.Concurrency != 0:
		return refuse("an open loop has a rate and no concurrency: leave one of them out", "concurrency and arrival exclude one another")
	case c.Open() && c.Requests != 0:
		return refuse("an open loop ends by time", "requests and arrival exclude one another")
	case !c.Open() && c.Concurrency < 1:
		return refuse("give the number of requests in flight, such as --concurrency 1,5,10; or a rate, for an open loop", "concurrency must be 1 or more")
	case c.Concurrency > MaxConcurrency:
		return refuse("one process has a connection for each request in flight; start several runs instead", "concurrency %d is more than %d", c.Concurrency, MaxConcurrency)
	}
	if err := c.Mix().Validate(); err != nil {
		return refuse("", "%w", err)
	}
	if c.Stop != nil {
		if err := c.Stop.validate(); err != nil {
			return err
		}
	}
	if c.Arrival == nil {
		return nil
	}
	if err := c.Arrival.Validate(); err != nil {
		return refuse("", "arrival: %w", err)
	}
	if c.Arrival.MaxInFlight > MaxConcurrency {
		return refuse("one process has a connection for each request in flight", "max_in_flight %d is more than %d", c.Arrival.MaxInFlight, MaxConcurrency)
	}
	// A rate so low that nothing is sent measures nothing (guidellm#115).
	due := c.Arrival.Expected(p.Seconds(c))
	if c.Arrival.Trace != nil {
		due = c.Arrival.Expected(p.Warmup(c)+p.Seconds(c)) - c.Arrival.Expected(p.Warmup(c))
	}
	if due < 1 {
		return refuse("raise the rate or lengthen the duration", "only %.3g requests are due in its %.3g s", due, p.Seconds(c))
	}
	return nil
}
