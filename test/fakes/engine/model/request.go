package model

// Request is one sequence in the engine.
type Request struct {
	// Prompt holds the token ids of the prompt, at least one.
	Prompt []int32
	// Output is the exact number of tokens to generate, at least one. Where generation would end by itself is the
	// caller's decision; the engine has no text.
	Output int
	// Token returns the id of output token i. It only matters to prefix caching; nil means tokens that no other
	// request shares.
	Token func(i int) int32
	// Owner is for the caller.
	Owner any

	phase       phase
	produced    int
	computed    int
	cached      int
	preemptions int
	seen        bool
	serial      uint64
	blocks      []int32
	hashes      []uint64
}

type phase uint8

const (
	phaseNew phase = iota
	phaseWaiting
	phaseRunning
	phaseFinished
	phaseAborted
)

// Produced is the number of tokens generated so far.
func (r *Request) Produced() int { return r.produced }

// CachedTokens is the number of prompt tokens that the prefix cache supplied when the request was first scheduled.
func (r *Request) CachedTokens() int { return r.cached }

// Preemptions is how often the request lost its KV blocks.
func (r *Request) Preemptions() int { return r.preemptions }

// Finished reports whether all output tokens were generated.
func (r *Request) Finished() bool { return r.phase == phaseFinished }

// length is the number of tokens whose KV is needed before the next token can be sampled.
func (r *Request) length() int { return len(r.Prompt) + r.produced }

// decoding reports whether only the last sampled token is left to compute.
func (r *Request) decoding() bool { return r.produced > 0 && r.length()-r.computed == 1 }

// at returns the id of token i of prompt and output together.
func (r *Request) at(i int) int32 {
	if i < len(r.Prompt) {
		return r.Prompt[i]
	}
	i -= len(r.Prompt)
	if r.Token != nil {
		return r.Token(i)
	}
	// Multiplying by an odd constant spreads the serial, so that no two requests share a block of output.
	return int32(uint32(r.serial)*2654435761 + uint32(i))
}

// extendHashes brings the block hashes up to the first n tokens.
func (r *Request) extendHashes(n, blockSize int) {
	for (len(r.hashes)+1)*blockSize <= n {
		h := chainStart
		if len(r.hashes) > 0 {
			h = r.hashes[len(r.hashes)-1]
		}
		first := len(r.hashes) * blockSize
		for i := first; i < first+blockSize; i++ {
			h = chain(h, r.at(i))
		}
		// A final mix, because FNV alone leaves the low tokens weak in the high bits of the next link.
		h ^= h >> 29
		r.hashes = append(r.hashes, h)
	}
}
