package model

import (
	"math"
	"time"
)

// Shape is the length of a request in tokens.
type Shape struct {
	Input, Output int
}

// Point is the true state of one replica under a closed loop: a fixed number of clients, each of which sends its next
// request when the former is answered.
type Point struct {
	Concurrency int
	// Batch is the number of requests that run at once; the others wait.
	Batch float64
	// Throughput is in requests per second.
	Throughput float64
	// Latency is the mean end-to-end time, waiting included: Concurrency / Throughput, by Little's law.
	Latency time.Duration
	// KVUse is the mean share of KV blocks in use, 0 to 1.
	KVUse float64
}

// ClosedLoop returns the steady state at n clients with one shape, distinct prompts and no time between requests.
//
// With m requests in the batch, a request stays for S steps, and in that time each of the m goes once through prefill:
//
//	T(m) = S*Step + m*(Output-1+k)*PerSequence + m*Input*PerPrefillToken,   X = m/T,   R = n/X
//
// k is the number of chunks of a prompt and S = max(Output-1+k, m*(Input+Output-1)/MaxNumBatchedTokens): as many steps
// as tokens are sampled, or as the token budget needs. m is n up to [Config.SaturationBatch]. Where memory is what
// limits the batch, preemptions cost extra and the result is an upper bound; [Simulate] is exact.
func (c Config) ClosedLoop(n int, s Shape) Point {
	m := math.Min(float64(n), c.SaturationBatch(s))
	chunks := float64(c.chunks(m, s))
	budget := float64(c.MaxNumBatchedTokens)
	in, out := float64(s.Input), float64(s.Output)

	steps := math.Max(out-1+chunks, m*(in+out-1)/budget)
	cycle := steps*c.Cost.Step.Seconds() +
		m*(out-1+chunks)*c.Cost.PerSequence.Seconds() +
		m*in*c.Cost.PerPrefillToken.Seconds()
	x := m / cycle
	return Point{
		Concurrency: n,
		Batch:       m,
		Throughput:  x,
		Latency:     time.Duration(float64(n) / x * float64(time.Second)),
		KVUse:       math.Min(1, m*c.meanBlocks(s)/float64(c.NumBlocks)),
	}
}

// SaturationBatch is the number of requests beyond which more clients only lengthen the queue: the sequence limit, or
// the number of requests whose KV fits, taken at the mean over a request's life.
func (c Config) SaturationBatch(s Shape) float64 {
	return math.Min(float64(c.MaxNumSeqs), math.Max(1, float64(c.NumBlocks)/c.meanBlocks(s)))
}

// MaxThroughput is the highest rate of one shape in requests per second, reached at the saturation batch.
func (c Config) MaxThroughput(s Shape) float64 {
	return c.ClosedLoop(int(math.Ceil(c.SaturationBatch(s))), s).Throughput
}

// MaxConcurrency is the highest number of clients whose mean latency stays within a limit, 0 if one is too many.
func (c Config) MaxConcurrency(s Shape, limit time.Duration) int {
	// Latency never falls with more clients. Past saturation it is a straight line, so this ends.
	n := 0
	for c.ClosedLoop(n+1, s).Latency <= limit {
		n++
	}
	return n
}

// chunks is the number of steps that compute one prompt while the rest of the batch decodes.
func (c Config) chunks(batch float64, s Shape) int {
	room := max(1, c.MaxNumBatchedTokens-int(math.Ceil(batch))+1)
	return (s.Input + room - 1) / room
}

// meanBlocks is the number of KV blocks that a request holds, averaged over its steps.
func (c Config) meanBlocks(s Shape) float64 {
	sum := 0
	for i := range s.Output {
		sum += c.blocksFor(s.Input + i)
	}
	return float64(sum) / float64(s.Output)
}
