package record

import "strconv"

const (
	percent = 100.0
	milli   = 1000.0
)

// csvCounts are the columns about requests and tokens.
func csvCounts() []csvColumn {
	share := func(part, whole int) string {
		if whole == 0 {
			return ""
		}
		value := float64(part) / float64(whole)
		return csvNumber(&value, percent)
	}
	total := func(perSecond func(csvRow) float64) func(csvRow) string {
		return func(r csvRow) string {
			value := perSecond(r) * r.c.Window.Seconds
			return csvNumber(&value, 1)
		}
	}
	rate := func(perSecond func(csvRow) float64) func(csvRow) string {
		return func(r csvRow) string {
			value := perSecond(r)
			return csvNumber(&value, 1)
		}
	}
	counted := func(pick func(CaseCounts) int) func(csvRow) string {
		return func(r csvRow) string {
			if r.published() {
				return ""
			}
			return strconv.Itoa(pick(r.c.Counts))
		}
	}
	prompt := func(r csvRow) float64 { return r.c.PromptTokensPerSecond }
	output := func(r csvRow) float64 { return r.c.OutputTokensPerSecond }
	return []csvColumn{
		{"requests_total", counted(func(c CaseCounts) int { return c.Started })},
		{"successes", func(r csvRow) string {
			if r.published() {
				return strconv.Itoa(r.c.Counts.Completed)
			}
			return strconv.Itoa(r.c.Counts.Succeeded)
		}},
		{"errors", counted(func(c CaseCounts) int { return c.Failed })},
		{"success_rate_pct", func(r csvRow) string { return share(r.c.Counts.Succeeded, r.c.Counts.Started) }},
		{"error_rate_pct", func(r csvRow) string { return share(r.c.Counts.Failed, r.c.Counts.Started) }},
		{"attempted_rps", func(r csvRow) string {
			if r.published() {
				return ""
			}
			return csvNumber(r.per(float64(r.c.Counts.Started)), 1)
		}},
		{"successful_rps", rate(func(r csvRow) float64 { return r.c.RequestsPerSecond })},
		// An answer of another length than was asked for is an error here.
		{"output_length_match_rate_pct", func(r csvRow) string {
			short := r.c.Counts.Errors[ErrorShortOutput]
			return share(r.c.Counts.Succeeded, r.c.Counts.Succeeded+short)
		}},
		{"actual_prompt_tokens_total", total(prompt)},
		{"actual_output_tokens_total", total(output)},
		{"actual_prompt_tokens_per_sec", rate(prompt)},
		{"actual_output_tokens_per_sec", rate(output)},
		{"actual_total_tokens_per_sec", rate(func(r csvRow) float64 { return prompt(r) + output(r) })},
	}
}

// published says that the report is a table that somebody published: it has what
// was completed, and nothing of what was started.
func (r csvRow) published() bool { return r.c.Counts.Started == 0 && r.c.Counts.Completed > 0 }

// csvLatencies are the columns about latencies, in milliseconds.
func csvLatencies() []csvColumn {
	e2e := func(pick func(LatencySummary) *float64) func(csvRow) string {
		return func(r csvRow) string { return csvNumber(pick(r.c.Latency.E2E), milli) }
	}
	ttft := func(pick func(LatencySummary) *float64) func(csvRow) string {
		return func(r csvRow) string { return csvNumber(pick(r.c.Latency.TTFT), milli) }
	}
	tpot := func(pick func(LatencySummary) *float64) func(csvRow) string {
		return func(r csvRow) string { return csvNumber(pick(r.c.Latency.TPOT), milli) }
	}
	mean := func(s LatencySummary) *float64 { return s.Mean }
	p50 := func(s LatencySummary) *float64 { return s.P50 }
	p95 := func(s LatencySummary) *float64 { return s.P95 }
	p99 := func(s LatencySummary) *float64 { return s.P99 }
	return []csvColumn{
		{"latency_avg_ms", e2e(mean)},
		{"latency_min_ms", e2e(func(s LatencySummary) *float64 { return s.Min })},
		{"latency_max_ms", e2e(func(s LatencySummary) *float64 { return s.Max })},
		{"latency_p50_ms", e2e(p50)},
		{"latency_p90_ms", e2e(func(s LatencySummary) *float64 { return s.P90 })},
		{"latency_p95_ms", e2e(p95)},
		{"latency_p99_ms", e2e(p99)},
		// The report counts failed requests and does not time them.
		{"error_duration_avg_ms", unknownColumn},
		{"error_duration_p95_ms", unknownColumn},
		{"ttft_avg_ms", ttft(mean)},
		{"ttft_p50_ms", ttft(p50)},
		{"ttft_p95_ms", ttft(p95)},
		{"ttft_p99_ms", ttft(p99)},
		{"time_per_output_token_avg_ms", tpot(mean)},
		{"time_per_output_token_p95_ms", tpot(p95)},
	}
}

func unknownColumn(csvRow) string { return "" }

// csvServer are the columns about the server and its GPUs.
func csvServer() []csvColumn {
	counter := func(signal string) func(csvRow) string {
		return func(r csvRow) string {
			if series := r.c.Server[signal]; series != nil {
				return csvNumber(series.Increase, 1)
			}
			return ""
		}
	}
	gauge := func(signal string, scale float64, pick func(*ServerSeries) *float64) func(csvRow) string {
		return func(r csvRow) string {
			if series := r.c.Server[signal]; series != nil {
				return csvNumber(pick(series), scale)
			}
			return ""
		}
	}
	mean := func(s *ServerSeries) *float64 { return s.Mean }
	high := func(s *ServerSeries) *float64 { return s.Max }
	columns := []csvColumn{
		{"server_output_tokens_total", counter(SignalGenerationTokens)},
		{"server_output_tokens_per_sec", func(r csvRow) string {
			if series := r.c.Server[SignalGenerationTokens]; series != nil && series.Increase != nil {
				return csvNumber(r.per(*series.Increase), 1)
			}
			return ""
		}},
		{"preemptions_total", counter(SignalPreemptions)},
		{"prefix_cache_hits_total", counter(SignalPrefixHits)},
		{"requests_running_avg", gauge(SignalRunning, 1, mean)},
		{"requests_running_max", gauge(SignalRunning, 1, high)},
		{"requests_waiting_avg", gauge(SignalWaiting, 1, mean)},
		{"requests_waiting_max", gauge(SignalWaiting, 1, high)},
		{"kv_cache_pct_avg", gauge(SignalKVCacheUsage, percent, mean)},
		{"kv_cache_pct_max", gauge(SignalKVCacheUsage, percent, high)},
	}
	for _, name := range []string{
		"gpu_util_avg", "gpu_util_max", "gpu_memory_used_mib_avg", "gpu_memory_used_mib_max", "gpu_memory_free_mib_min",
		"gpu_memory_pct_avg", "gpu_memory_pct_max", "tensor_active_avg", "tensor_active_max", "dram_active_avg", "dram_active_max",
	} {
		columns = append(columns, csvColumn{name, unknownColumn})
	}
	return columns
}
