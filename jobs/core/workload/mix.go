package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// SharedPrefix makes prompts begin alike on purpose: every prompt starts with
// the Tokens of one of Groups prefixes, as requests with a few system prompts do.
type SharedPrefix struct {
	Tokens int `json:"tokens"`
	Groups int `json:"groups"`
}

// Sessions makes each unit of load a conversation. Its first prompt is as long
// as the case says; each later one is the prompt before it, an answer, and
// NewTokens more. The answer within a prompt stands in for the server's own: it
// has its length, not its text, so that prompts are known before the run; the
// server can find the earlier prompt in its prefix cache, not the answer.
type Sessions struct {
	Turns     int `json:"turns"`
	NewTokens int `json:"new_tokens"`
	// ThinkSeconds is the time between an answer and the next turn; where
	// ThinkExponential is set, its mean.
	ThinkSeconds     float64 `json:"think_seconds"`
	ThinkExponential bool    `json:"think_exponential,omitempty"`
}

// Mix says what the requests of a case look like. The zero Shared, Sessions and
// Trace are none.
type Mix struct {
	Prompt, Output Lengths
	Shared         *SharedPrefix
	Sessions       *Sessions
	Trace          *Trace
}

// Part is a stretch of a prompt: the first Tokens tokens of what ID stands for.
type Part struct {
	ID     ID
	Tokens int
}

// Prompt is a prompt by its parts.
type Prompt []Part

// Len is its length in tokens.
func (p Prompt) Len() int {
	n := 0
	for _, part := range p {
		n += part.Tokens
	}
	return n
}

// Tokens returns exactly Len token ids.
func (p Prompt) Tokens(seed uint64) []uint32 {
	tokens := make([]uint32, 0, p.Len())
	for _, part := range p {
		tokens = append(tokens, TokenPrompt(seed, part.ID, part.Tokens)...)
	}
	return tokens
}

// Text returns as many words less minus; a chat template adds about that many.
func (p Prompt) Text(seed uint64, words Words, minus int) string {
	var text []byte
	for i, part := range p {
		n := part.Tokens
		if i == len(p)-1 {
			n = max(n-minus, 0)
		}
		text = append(text, words.Text(seed, part.ID, n)...)
	}
	return string(text)
}

// Turn is one request.
type Turn struct {
	Prompt Prompt
	Output int
	// ThinkSeconds is the wait before it, after the answer to the turn before.
	ThinkSeconds float64
}

// The sets of a case that are not sets of requests.
const (
	setGroup uint8 = 14
	setBlock uint8 = 15
)

// Turns returns the requests of one unit of load: one, or those of a session.
// They follow from the seed, the case, the set and the place alone. at is the
// place of the unit in the load, warm-up included, by which a trace is read.
func (m Mix) Turns(seed uint64, caseIndex int, set uint8, place, at uint64) []Turn {
	id := NewID(caseIndex, set, place)
	random := rand.New(rand.NewPCG(scramble(seed^0x1e57), uint64(id)))
	if m.Trace != nil {
		return []Turn{m.traced(caseIndex, id, int(at%uint64(len(m.Trace.AtSeconds))))}
	}
	prompt, output := m.Prompt.Draw(random), m.Output.Draw(random)
	group := ID(0)
	if m.Shared != nil {
		group = NewID(caseIndex, setGroup, random.Uint64N(uint64(m.Shared.Groups)))
	}
	if m.Sessions == nil {
		return []Turn{{Prompt: m.compose(group, id, prompt), Output: output}}
	}
	turns := make([]Turn, 0, m.Sessions.Turns)
	for i := range m.Sessions.Turns {
		turn := Turn{Prompt: m.compose(group, id, prompt), Output: output}
		if i > 0 {
			turn.ThinkSeconds = m.Sessions.ThinkSeconds
			if m.Sessions.ThinkExponential {
				turn.ThinkSeconds *= random.ExpFloat64()
			}
		}
		turns = append(turns, turn)
		prompt += output + m.Sessions.NewTokens
		output = m.Output.Draw(random)
	}
	return turns
}

func (m Mix) compose(group, id ID, n int) Prompt {
	if m.Shared == nil {
		return Prompt{{id, n}}
	}
	shared := min(m.Shared.Tokens, n-1)
	return Prompt{{group, shared}, {id, n - shared}}
}

// traced is a request of the trace: blocks by their hash ids, which other
// requests may have too, and the rest of its own.
func (m Mix) traced(caseIndex int, id ID, i int) Turn {
	n := m.Trace.PromptTokens[i]
	var prompt Prompt
	if m.Trace.HashIDs != nil {
		for _, hash := range m.Trace.HashIDs[i] {
			if n == 0 {
				break
			}
			take := min(n, TraceBlock)
			// The last block may be cut: then its beginning is shared.
			prompt = append(prompt, Part{NewID(caseIndex, setBlock, hash), take})
			n -= take
		}
	}
	if n > 0 {
		prompt = append(prompt, Part{id, n})
	}
	return Turn{Prompt: prompt, Output: m.Trace.OutputTokens[i]}
}

// Shares says whether prompts begin alike on purpose, so that the server finds
// them in its prefix cache.
func (m Mix) Shares() bool {
	return m.Shared != nil || m.Sessions != nil && m.Sessions.Turns > 1 || m.Trace != nil && m.Trace.HashIDs != nil
}

// Longest is the largest number of prompt and output tokens of a request.
func (m Mix) Longest() (prompt, output int) {
	if m.Trace != nil {
		return slices.Max(m.Trace.PromptTokens), slices.Max(m.Trace.OutputTokens)
	}
	prompt, output = m.Prompt.Max, m.Output.Max
	if m.Sessions != nil {
		prompt += (m.Sessions.Turns - 1) * (output + m.Sessions.NewTokens)
	}
	return prompt, output
}

// Shortest is the smallest number of prompt tokens of a request.
func (m Mix) Shortest() int {
	if m.Trace != nil {
		return slices.Min(m.Trace.PromptTokens)
	}
	return m.Prompt.Min
}

// Validate refuses what cannot be sent.
func (m Mix) Validate() error {
	if m.Trace == nil {
		for name, lengths := range map[string]Lengths{"prompt": m.Prompt, "output": m.Output} {
			if err := lengths.Validate(); err != nil {
				return fmt.Errorf("%s lengths: %w", name, err)
			}
		}
	}
	if s := m.Shared; s != nil {
		switch {
		case s.Tokens < 1 || s.Groups < 1 || s.Groups > 1<<30:
			return fmt.Errorf("a shared prefix needs tokens and groups of 1 or more")
		case m.Trace != nil:
			return fmt.Errorf("a trace has its own shared prefixes")
		case s.Tokens >= m.Prompt.Min:
			return fmt.Errorf("the shared prefix of %d tokens leaves nothing of a prompt of %d", s.Tokens, m.Prompt.Min)
		}
	}
	if s := m.Sessions; s != nil {
		switch {
		case s.Turns < 1 || s.Turns > 1000 || s.NewTokens < 1:
			return fmt.Errorf("sessions need 1 to 1000 turns, and new_tokens of 1 or more")
		case !(s.ThinkSeconds >= 0) || s.ThinkSeconds > 86400:
			return fmt.Errorf("the think time must be 0 to a day")
		case m.Trace != nil:
			return fmt.Errorf("a trace has its own turns")
		}
		if prompt, _ := m.Longest(); prompt > MaxLength {
			return fmt.Errorf("the last turn would be of %d tokens", prompt)
		}
	}
	return nil
}
