// Package engine is an inference engine without a GPU: an OpenAI-compatible server in the manner of vLLM, whose every
// delay comes from the queueing model of [model] and whose true capacity is therefore known. It is what benchmarks,
// dashboards and autoscalers are tested against.
//
// What is faithful: the wire (request fields, SSE bytes, error bodies, /metrics names, labels and buckets of the v1
// engine), continuous batching with its sequence, token and memory limits, preemption, prefix caching, client
// disconnects, exact token counts. What is not: the text, which is made of invented words; the tokenizer, which is the
// one of [token]; sampling parameters, which are accepted and have no effect.
//
// With Speed 10, one second of the engine takes 100 ms. Latency metrics and clients see the real 100 ms.
package engine
