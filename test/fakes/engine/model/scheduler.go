package model

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrTooLong is returned for a request that can never run: more tokens than the model length.
var ErrTooLong = errors.New("request is longer than the model length")

// Scheduler holds the state of one engine. It is not safe for concurrent use.
type Scheduler struct {
	config  Config
	pool    *pool
	running []*Request
	waiting []*Request // in order of service; preempted requests at the front
	serial  uint64
	totals  Totals

	step   Step
	tokens []Token
}

// Totals counts what the engine has done since it started.
type Totals struct {
	Steps            int           `json:"steps"`
	Busy             time.Duration `json:"-"`             // the sum of the step durations, in engine time
	PromptTokens     int           `json:"prompt_tokens"` // of requests that produced their first token
	GenerationTokens int           `json:"generation_tokens"`
	Preemptions      int           `json:"preemptions"`
	PrefixQueries    int           `json:"prefix_queries"` // tokens looked up in the prefix cache
	PrefixHits       int           `json:"prefix_hits"`    // tokens found there
	Finished         int           `json:"finished"`
	Aborted          int           `json:"aborted"`
}

// Work is the part of one request in a step.
type Work struct {
	Request *Request
	// Tokens is how many tokens of the request are computed.
	Tokens int
	// Prefill is true unless the one token is the last sampled one.
	Prefill bool
}

// Step is what the engine computes next. It is valid until the next call of Plan.
type Step struct {
	Work      []Work
	Admitted  []*Request // scheduled from the queue in this step, including those preempted before
	Preempted []*Request
	// PrefillTokens and DecodeTokens are the tokens computed; together they never exceed the token budget.
	PrefillTokens int
	DecodeTokens  int
	// Duration is the engine time of the step.
	Duration time.Duration
}

// Token is one generated token.
type Token struct {
	Request *Request
	Index   int  // from 0
	Last    bool // the request is finished
}

// New returns an idle engine.
func New(c Config) (*Scheduler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Scheduler{config: c, pool: newPool(c.NumBlocks)}, nil
}

// Config returns the configuration.
func (s *Scheduler) Config() Config { return s.config }

// Running is the number of requests that hold a place in the batch.
func (s *Scheduler) Running() int { return len(s.running) }

// Waiting is the number of requests in the queue.
func (s *Scheduler) Waiting() int { return len(s.waiting) }

// KVUse is the share of KV blocks in use, 0 to 1. Blocks that are only remembered for prefix caching count as free.
func (s *Scheduler) KVUse() float64 { return float64(s.pool.used()) / float64(s.config.NumBlocks) }

// Totals returns the counters.
func (s *Scheduler) Totals() Totals { return s.totals }

// ForgetPrefixes empties the prefix cache.
func (s *Scheduler) ForgetPrefixes() { s.pool.forget() }

// Add appends a request to the queue.
func (s *Scheduler) Add(r *Request) error {
	if len(r.Prompt) == 0 || r.Output < 1 {
		return fmt.Errorf("add request: want at least one prompt token and one output token, got %d and %d", len(r.Prompt), r.Output)
	}
	if total := len(r.Prompt) + r.Output; total > s.config.MaxModelLen {
		return fmt.Errorf("add request: %w: %d tokens of prompt and output, at most %d", ErrTooLong, total, s.config.MaxModelLen)
	}
	if r.phase != phaseNew {
		return errors.New("add request: it was added before")
	}
	s.serial++
	r.serial, r.phase = s.serial, phaseWaiting
	s.waiting = append(s.waiting, r)
	return nil
}

// Abort removes a request that is not finished and frees its blocks. It may be called between Plan and Complete; the
// step then takes as long as planned, and the request gets no token.
func (s *Scheduler) Abort(r *Request) bool {
	switch r.phase {
	case phaseWaiting:
		s.waiting = slices.DeleteFunc(s.waiting, func(q *Request) bool { return q == r })
	case phaseRunning:
		s.running = slices.DeleteFunc(s.running, func(q *Request) bool { return q == r })
		s.free(r)
	default:
		return false
	}
	r.phase = phaseAborted
	s.totals.Aborted++
	return true
}

// Plan decides the next step. A step without Work means that the engine is idle.
func (s *Scheduler) Plan() *Step {
	step := &s.step
	*step = Step{Work: step.Work[:0], Admitted: step.Admitted[:0], Preempted: step.Preempted[:0]}
	budget := s.config.MaxNumBatchedTokens

	for i := 0; i < len(s.running) && budget > 0; i++ {
		r := s.running[i]
		n := min(r.length()-r.computed, budget)
		if !s.makeRoom(step, r, n) {
			break
		}
		budget -= n
		s.schedule(step, r, n)
	}
	// A preemption means that memory is short: admitting another request now would only be undone.
	for len(step.Preempted) == 0 && len(s.waiting) > 0 && len(s.running) < s.config.MaxNumSeqs && budget > 0 {
		n, ok := s.admit(s.waiting[0], budget)
		if !ok {
			break
		}
		r := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		s.running = append(s.running, r)
		r.phase = phaseRunning
		step.Admitted = append(step.Admitted, r)
		budget -= n
		s.schedule(step, r, n)
	}
	if len(step.Work) > 0 {
		step.Duration = s.config.Cost.Of(len(step.Work), step.PrefillTokens)
	}
	return step
}

// makeRoom allocates blocks for n more tokens of r and preempts the newest requests until they are there. It returns
// false when r itself had to go.
func (s *Scheduler) makeRoom(step *Step, r *Request, n int) bool {
	for {
		need := s.config.blocksFor(r.computed+n) - len(r.blocks)
		if need <= s.pool.free {
			r.blocks = s.pool.take(r.blocks, need)
			return true
		}
		last := s.running[len(s.running)-1]
		s.running = s.running[:len(s.running)-1]
		s.free(last)
		last.phase = phaseWaiting
		last.preemptions++
		s.totals.Preemptions++
		s.waiting = slices.Insert(s.waiting, 0, last)
		step.Preempted = append(step.Preempted, last)
		if last == r {
			return false
		}
	}
}

// admit allocates the first blocks of a waiting request, reusing what the prefix cache has.
func (s *Scheduler) admit(r *Request, budget int) (n int, ok bool) {
	bs := s.config.BlockSize
	hits, idle := 0, 0
	if s.config.PrefixCaching {
		r.extendHashes(r.length(), bs)
		// The last token is always computed, since its result is the next token.
		for hits < len(r.hashes) && (hits+1)*bs < r.length() {
			id, found := s.pool.index[r.hashes[hits]]
			if !found {
				break
			}
			if s.pool.blocks[id].users == 0 {
				idle++
			}
			hits++
		}
	}
	n = min(r.length()-hits*bs, budget)
	need := s.config.blocksFor(hits*bs+n) - hits
	if need+idle > s.pool.free {
		return 0, false
	}
	for _, h := range r.hashes[:hits] {
		id := s.pool.index[h]
		s.pool.share(id)
		r.blocks = append(r.blocks, id)
	}
	r.blocks = s.pool.take(r.blocks, need)
	r.computed = hits * bs
	if !r.seen {
		r.seen, r.cached = true, hits*bs
		if s.config.PrefixCaching {
			s.totals.PrefixQueries += len(r.Prompt)
			s.totals.PrefixHits += hits * bs
		}
	}
	return n, true
}

func (s *Scheduler) schedule(step *Step, r *Request, n int) {
	prefill := !r.decoding()
	if prefill {
		step.PrefillTokens += n
	} else {
		step.DecodeTokens += n
	}
	step.Work = append(step.Work, Work{Request: r, Tokens: n, Prefill: prefill})
	if !s.config.PrefixCaching {
		return
	}
	// Blocks become findable when they are scheduled, not when they are computed: a request with the same beginning
	// that joins the same step reads them after they were written.
	bs := s.config.BlockSize
	full := (r.computed + n) / bs
	r.extendHashes(full*bs, bs)
	for i := r.computed / bs; i < full; i++ {
		s.pool.remember(r.blocks[i], r.hashes[i])
	}
}

// Complete applies the step that Plan returned and gives the tokens it generated, in the order of the batch. The
// result is valid until the next call.
func (s *Scheduler) Complete(step *Step) []Token {
	s.tokens = s.tokens[:0]
	finished := false
	for _, w := range step.Work {
		r := w.Request
		if r.phase != phaseRunning {
			continue
		}
		r.computed += w.Tokens
		if r.computed < r.length() {
			continue
		}
		if r.produced == 0 {
			s.totals.PromptTokens += len(r.Prompt)
		}
		r.produced++
		s.totals.GenerationTokens++
		last := r.produced == r.Output
		if last {
			r.phase = phaseFinished
			s.free(r)
			s.totals.Finished++
			finished = true
		}
		s.tokens = append(s.tokens, Token{Request: r, Index: r.produced - 1, Last: last})
	}
	if finished {
		s.running = slices.DeleteFunc(s.running, func(r *Request) bool { return r.phase != phaseRunning })
	}
	if len(step.Work) > 0 {
		s.totals.Steps++
		s.totals.Busy += step.Duration
	}
	return s.tokens
}

// free gives back the blocks of a request and forgets what was computed.
func (s *Scheduler) free(r *Request) {
	s.pool.release(r.blocks)
	r.blocks = r.blocks[:0]
	r.computed = 0
}
