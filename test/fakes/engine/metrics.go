package engine

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// metrics are the Prometheus series of the vLLM v1 engine: names, labels and buckets as in vllm/v1/metrics/loggers.py.
// Times are real seconds.
type metrics struct {
	live   live
	pins   atomic.Pointer[Pins]
	totals model.Totals // as of the latest step, of the scheduler goroutine alone

	preemptions, promptTokens, generationTokens, prefixQueries, prefixHits prometheus.Counter
	success                                                                map[string]prometheus.Counter

	ttft, itl, tpot, e2e, queue, inference, prefill, decode prometheus.Observer
	promptLength, outputLength, iteration                   prometheus.Observer

	http *prometheus.CounterVec
}

// live is the state after the latest step.
type live struct {
	running, waiting atomic.Int64
	kv               atomic.Uint64 // bits of a float64
}

// Pins replaces the value of a gauge, for tests of what reads it. Nil leaves the true value.
type Pins struct {
	Running *float64 `json:"running,omitempty"`
	Waiting *float64 `json:"waiting,omitempty"`
	KVUse   *float64 `json:"kv_cache_usage,omitempty"`
}

func latencyBuckets() []float64 {
	return []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
}

func perTokenBuckets() []float64 {
	return []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
}

func ttftBuckets() []float64 {
	return []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
}

func iterationBuckets() []float64 {
	return []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
}

// lengthBuckets are 1, 2, 5, 10, 20, 50 and so on up to the model length.
func lengthBuckets(limit int) []float64 {
	var b []float64
	for unit := 1; ; unit *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*unit > limit {
				return b
			}
			b = append(b, float64(m*unit))
		}
	}
}

// registrar registers collectors and keeps the first error.
type registrar struct {
	registry *prometheus.Registry
	labels   prometheus.Labels
	err      error
}

func (r *registrar) add(c prometheus.Collector) {
	if err := r.registry.Register(c); err != nil && r.err == nil {
		r.err = fmt.Errorf("register metrics: %w", err)
	}
}

func (r *registrar) gauge(name, help string, value func() float64) {
	r.add(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: r.labels}, value))
}

func (r *registrar) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: r.labels})
	r.add(c)
	return c
}

func (r *registrar) histogram(name, help string, buckets []float64) prometheus.Observer {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: r.labels})
	r.add(h)
	return h
}

func newMetrics(c Config) (*metrics, error) {
	m := &metrics{success: make(map[string]prometheus.Counter)}
	r := &registrar{registry: c.Registry, labels: prometheus.Labels{"model_name": c.Names[0], "engine": "0"}}

	r.gauge("vllm:num_requests_running", "Requests in the batch.", func() float64 {
		return m.pinned(func(p *Pins) *float64 { return p.Running }, float64(m.live.running.Load()))
	})
	r.gauge("vllm:num_requests_waiting", "Requests in the queue.", func() float64 {
		return m.pinned(func(p *Pins) *float64 { return p.Waiting }, float64(m.live.waiting.Load()))
	})
	r.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.", func() float64 {
		return m.pinned(func(p *Pins) *float64 { return p.KVUse }, math.Float64frombits(m.live.kv.Load()))
	})
	m.preemptions = r.counter("vllm:num_preemptions_total", "Requests that lost their KV blocks.")
	m.promptTokens = r.counter("vllm:prompt_tokens_total", "Prompt tokens processed.")
	m.generationTokens = r.counter("vllm:generation_tokens_total", "Tokens generated.")
	m.prefixQueries = r.counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.")
	m.prefixHits = r.counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.")

	success := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vllm:request_success_total", Help: "Finished requests by reason, aborted ones included.", ConstLabels: r.labels,
	}, []string{"finished_reason"})
	r.add(success)
	for _, reason := range []string{"stop", "length", "abort", "error"} {
		m.success[reason] = success.WithLabelValues(reason)
	}

	m.ttft = r.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", ttftBuckets())
	m.itl = r.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request.", perTokenBuckets())
	m.tpot = r.histogram("vllm:request_time_per_output_token_seconds", "Mean of a request between its tokens.", perTokenBuckets())
	m.e2e = r.histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", latencyBuckets())
	m.queue = r.histogram("vllm:request_queue_time_seconds", "From arrival to the first step.", latencyBuckets())
	m.inference = r.histogram("vllm:request_inference_time_seconds", "From the first step to the last token.", latencyBuckets())
	m.prefill = r.histogram("vllm:request_prefill_time_seconds", "From the first step to the first token.", latencyBuckets())
	m.decode = r.histogram("vllm:request_decode_time_seconds", "From the first token to the last.", latencyBuckets())
	m.promptLength = r.histogram("vllm:request_prompt_tokens", "Prompt length of finished requests.", lengthBuckets(c.Model.MaxModelLen))
	m.outputLength = r.histogram("vllm:request_generation_tokens", "Output length of finished requests.", lengthBuckets(c.Model.MaxModelLen))
	m.iteration = r.histogram("vllm:iteration_tokens_total", "Tokens of an engine step.", iterationBuckets())

	r.add(cacheInfo(c))
	m.http = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "http_requests_total", Help: "HTTP requests by handler, method and status class.",
	}, []string{"handler", "method", "status"})
	r.add(m.http)
	return m, r.err
}

// cacheInfo is a gauge that is always one; the labels are the information.
func cacheInfo(c Config) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "vllm:cache_config_info", Help: "Configuration of the KV cache.",
		ConstLabels: prometheus.Labels{
			"engine":                 "0",
			"block_size":             strconv.Itoa(c.Model.BlockSize),
			"num_gpu_blocks":         strconv.Itoa(c.Model.NumBlocks),
			"gpu_memory_utilization": strconv.FormatFloat(c.GPUMemoryUtilization, 'g', -1, 64),
			"cache_dtype":            "auto",
			"enable_prefix_caching":  pythonBool(c.Model.PrefixCaching),
		},
	})
	g.Set(1)
	return g
}

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func (m *metrics) pinned(pick func(*Pins) *float64, value float64) float64 {
	if p := m.pins.Load(); p != nil {
		if v := pick(p); v != nil {
			return *v
		}
	}
	return value
}

func (m *metrics) state(s *model.Scheduler) {
	m.live.running.Store(int64(s.Running()))
	m.live.waiting.Store(int64(s.Waiting()))
	m.live.kv.Store(math.Float64bits(s.KVUse()))
}

func (m *metrics) firstToken(d time.Duration) { m.ttft.Observe(d.Seconds()) }

func (m *metrics) nextToken(d time.Duration) { m.itl.Observe(d.Seconds()) }

func (m *metrics) aborted() { m.success["abort"].Inc() }

// finished records a request at its last token.
func (m *metrics) finished(j *job) {
	m.success[j.reason].Inc()
	n := j.request.Produced()
	decode := j.last.Sub(j.first).Seconds()
	perToken := 0.0
	if n > 1 {
		perToken = decode / float64(n-1)
	}
	m.tpot.Observe(perToken)
	m.e2e.Observe(j.last.Sub(j.arrived).Seconds())
	m.queue.Observe(j.scheduled.Sub(j.arrived).Seconds())
	m.inference.Observe(j.last.Sub(j.scheduled).Seconds())
	m.prefill.Observe(j.first.Sub(j.scheduled).Seconds())
	m.decode.Observe(decode)
	m.promptLength.Observe(float64(len(j.request.Prompt)))
	m.outputLength.Observe(float64(n))
}

// step adds what changed in the totals since the step before.
func (m *metrics) step(step *model.Step, now model.Totals) {
	was := m.totals
	m.totals = now
	m.preemptions.Add(float64(now.Preemptions - was.Preemptions))
	m.promptTokens.Add(float64(now.PromptTokens - was.PromptTokens))
	m.generationTokens.Add(float64(now.GenerationTokens - was.GenerationTokens))
	m.prefixQueries.Add(float64(now.PrefixQueries - was.PrefixQueries))
	m.prefixHits.Add(float64(now.PrefixHits - was.PrefixHits))
	m.iteration.Observe(float64(step.PrefillTokens + step.DecodeTokens))
}
