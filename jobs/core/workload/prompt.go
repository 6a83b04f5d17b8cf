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

// words are short, common words: with a space before, each is one token in the
// usual English vocabularies.
const words = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which " +
	"one you were her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some could"

// TextPrompt returns a prompt of n words, for an API that takes no token ids.
// Its length in tokens is about n, plus what a chat template adds; the server's
// usage tells. The first eleven words are a code of the id.
func TextPrompt(seed uint64, id ID, n int) string {
	list := strings.Fields(words)[:64]
	code := scramble(uint64(id) ^ scramble(seed))
	random := rand.New(rand.NewPCG(seed, uint64(id)))
	var text strings.Builder
	for i := range n {
		word := list[random.IntN(len(list))]
		if i < 11 { // 64^11 > 2^64
			word = list[code%64]
			code /= 64
		}
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(word)
	}
	return text.String()
}
