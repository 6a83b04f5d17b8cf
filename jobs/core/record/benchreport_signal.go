package record

// The signals of a CaseReport's Server.
const (
	SignalWaiting          = "waiting"
	SignalRunning          = "running"
	SignalKVCacheUsage     = "kv_cache_usage"
	SignalReplicas         = "replicas"
	SignalPreemptions      = "preemptions"
	SignalPrefixQueries    = "prefix_cache_queries"
	SignalPrefixHits       = "prefix_cache_hits"
	SignalPromptTokens     = "prompt_tokens"
	SignalGenerationTokens = "generation_tokens"
)

// BenchSignals lists the signals.
func BenchSignals() []string {
	return []string{
		SignalWaiting, SignalRunning, SignalKVCacheUsage, SignalReplicas, SignalPreemptions,
		SignalPrefixQueries, SignalPrefixHits, SignalPromptTokens, SignalGenerationTokens,
	}
}

// ServerSeries is one signal over a window, summed over the replicas at each
// moment: what an autoscaler with an AverageValue target divides by their
// number.
type ServerSeries struct {
	// Query is the PromQL that gave it.
	Query string `json:"query"`
	// Samples is the number of moments.
	Samples int `json:"samples"`
	// Mean, Max and Min are over the moments; nil for a counter.
	Mean *float64 `json:"mean"`
	Max  *float64 `json:"max"`
	Min  *float64 `json:"min"`
	// Increase is a counter's growth over the window; nil for a gauge.
	Increase *float64 `json:"increase"`
}
