package model

import (
	"fmt"
	"time"
)

// Config describes one replica of the engine.
type Config struct {
	// Cost is the price list of one engine step.
	Cost Cost
	// MaxNumSeqs bounds the requests that run at once (vLLM: --max-num-seqs).
	MaxNumSeqs int
	// MaxNumBatchedTokens bounds the tokens of one step (vLLM: --max-num-batched-tokens).
	// A prompt that does not fit is computed in chunks over several steps.
	MaxNumBatchedTokens int
	// MaxModelLen bounds prompt plus output of one request, in tokens (vLLM: --max-model-len).
	MaxModelLen int
	// BlockSize is the number of tokens of one KV block.
	BlockSize int
	// NumBlocks is the KV capacity in blocks (vLLM: --num-gpu-blocks-override).
	NumBlocks int
	// PrefixCaching lets a request reuse the full blocks that an earlier request with the same beginning has left.
	PrefixCaching bool
}

// Cost prices one engine step: Step + PerSequence*batch + PerPrefillToken*(prompt tokens computed in the step).
//
// The form is the usual one for continuous batching: decoding is bound by memory traffic, so a step has a fixed part
// (reading the weights) and a part for each sequence (reading its KV), while prefill is bound by arithmetic, so it is
// proportional to tokens.
type Cost struct {
	Step            time.Duration
	PerSequence     time.Duration
	PerPrefillToken time.Duration
}

// Of returns the duration of a step.
func (c Cost) Of(batch, prefillTokens int) time.Duration {
	return c.Step + time.Duration(batch)*c.PerSequence + time.Duration(prefillTokens)*c.PerPrefillToken
}

// Default returns a 14B model quantised to 4 bits on a 24 GB GPU, as it was measured in public at 1024 prompt and 128
// output tokens: 0.33, 0.98, 1.32, 1.54 and 1.63 requests a second at concurrency 1, 5, 10, 20 and 40, with 78 % of
// the KV cache in use at 40.
func Default() Config {
	return Config{
		Cost: Cost{
			Step:            19500 * time.Microsecond,
			PerSequence:     1900 * time.Microsecond,
			PerPrefillToken: 300 * time.Microsecond,
		},
		MaxNumSeqs:          40,
		MaxNumBatchedTokens: 2048,
		MaxModelLen:         15000,
		BlockSize:           16,
		NumBlocks:           3513,
		PrefixCaching:       true,
	}
}

// Validate reports the first setting with which the engine could not start.
func (c Config) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"max num seqs", c.MaxNumSeqs},
		{"max num batched tokens", c.MaxNumBatchedTokens},
		{"max model len", c.MaxModelLen},
		{"block size", c.BlockSize},
		{"number of kv blocks", c.NumBlocks},
	} {
		if f.value < 1 {
			return fmt.Errorf("check engine configuration: %s must be at least 1, not %d", f.name, f.value)
		}
	}
	if c.Cost.Step < 0 || c.Cost.PerSequence < 0 || c.Cost.PerPrefillToken < 0 || c.Cost.Of(1, 0) <= 0 {
		return fmt.Errorf("check engine configuration: a step must take time: %+v", c.Cost)
	}
	if c.MaxNumBatchedTokens < c.MaxNumSeqs {
		return fmt.Errorf("check engine configuration: max num batched tokens (%d) must be at least max num seqs (%d)",
			c.MaxNumBatchedTokens, c.MaxNumSeqs)
	}
	if need := c.blocksFor(c.MaxModelLen); need > c.NumBlocks {
		return fmt.Errorf("check engine configuration: one request of %d tokens (max model len) needs %d kv blocks, but there are %d",
			c.MaxModelLen, need, c.NumBlocks)
	}
	return nil
}

// blocksFor returns the blocks that hold n tokens.
func (c Config) blocksFor(n int) int { return (n + c.BlockSize - 1) / c.BlockSize }
