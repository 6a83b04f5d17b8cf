// Package workload makes the requests of a measuring run. Everything follows
// from one seed, so two runs of one plan send equal prompts.
package workload

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// Block is the number of tokens that engines cache prefixes by: vLLM's default
// block size. Two prompts whose first blocks differ share no cached prefix.
const Block = 16

// The ids that prompts are made of. Tokenizers keep control tokens and single
// bytes at the low end and special tokens at the high end; every vocabulary of
// 32,000 tokens or more has ordinary tokens here.
const (
	firstID = 1000
	numIDs  = 28000
)

// Seed is the seed of one run's prompts: it follows from the plan's seed and the
// run's name. Another run has other prompts, so that it finds nothing of an
// earlier one in the server's prefix cache (vllm#54227).
func Seed(seed uint64, run string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(run)) // a hash never fails
	return scramble(seed ^ scramble(hash.Sum64()))
}

// ID numbers a request of a run. Requests with different IDs never share the
// first Block tokens of their prompts.
type ID uint64

// NewID numbers a request by its case, the set that it belongs to and its place
// in it. The sets of a case, such as warm-up and measured, are disjoint.
func NewID(caseIndex int, set uint8, place uint64) ID {
	return ID(uint64(caseIndex)<<44 | uint64(set&0xf)<<40 | place&(1<<40-1))
}

// TokenPrompt returns a prompt of exactly n token ids. The first block is an
// injective code of the id, scrambled by the seed; random tokens follow. A
// prompt shorter than five tokens cannot hold the whole code, and one that is
// shorter than a block is never cached.
func TokenPrompt(seed uint64, id ID, n int) []uint32 {
	tokens := make([]uint32, n)
	code := scramble(uint64(id) ^ scramble(seed))
	random := rand.New(rand.NewPCG(seed, uint64(id)))
	for i := range tokens {
		if code > 0 || i < 5 { // 28000^5 > 2^64: five digits hold every code
			tokens[i] = firstID + uint32(code%numIDs)
			code /= numIDs
			continue
		}
		tokens[i] = firstID + random.Uint32N(numIDs)
	}
	return tokens
}

// scramble is the finalizer of SplitMix64 (Steele, Lea and Flood 2014). It is a
// bijection, so different ids stay different.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Words are words of which each, with a space before it, is one token of the
// server's vocabulary. There are at least 16 of them.
type Words []string

// CommonWords are short words of everyday English: one token each in the usual
// vocabularies. Which of them are so in a server's own, /tokenize tells.
func CommonWords() Words {
	return strings.Fields("the and for you was his but are had one her all she who out can new its him has now two not any may our use day way man " +
		"get did how too old see own say let put end why off far big few got men yet law run set car war top red air act age cut " +
		"of to in is that it as with be by on he at this have from or an they which were there would their we been when will more no if so said what up about into than them only other some could")
}

// Text returns n words, each with a space before it, for an API that takes no
// token ids. It begins with an injective code of the id.
func (w Words) Text(seed uint64, id ID, n int) string {
	size := uint64(len(w))
	code := scramble(uint64(id) ^ scramble(seed))
	random := rand.New(rand.NewPCG(seed, uint64(id)))
	var text strings.Builder
	for i := range n {
		word := w[random.Uint64N(size)]
		if i < digits(size) {
			word = w[code%size]
			code /= size
		}
		text.WriteByte(' ')
		text.WriteString(word)
	}
	return text.String()
}

// digits is the number of digits to the base that hold every code.
func digits(base uint64) int {
	n := 0
	for rest := ^uint64(0); rest > 0; rest /= base {
		n++
	}
	return n
}
