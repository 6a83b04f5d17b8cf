// Package model is the queueing model of an inference engine with continuous batching, in the manner of vLLM v1.
//
// It is pure and deterministic: no clock, no randomness, no goroutine. A [Scheduler] is stepped by its caller. Plan
// decides what the next engine step computes and how long it takes; Complete applies the result. The HTTP server
// sleeps between the two; a [Simulation] only adds the duration to a virtual clock, so that thousands of requests take
// milliseconds. Both therefore obey the same rules:
//
//   - Running requests come first, in order of admission, then waiting ones, first come first served, while the token
//     budget, the sequence limit and the KV blocks last.
//   - A prompt larger than what is left of the budget is computed in chunks.
//   - KV is allocated block by block as tokens are computed. When there is no free block, the request admitted last is
//     preempted: its blocks are freed, it goes back to the head of the queue, and later it is computed again.
//   - Full blocks are found again by the hash of everything before them (prefix caching), until evicted, the least
//     recently used first.
//
// Because the rules are simple, the true capacity can be computed: see [Config.ClosedLoop], [Config.SaturationBatch]
// and [Config.MaxThroughput]. That is what a benchmark of this engine must find.
package model
