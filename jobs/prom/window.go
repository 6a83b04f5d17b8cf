package prom

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// signal is how one signal is read from vLLM's metrics.
type signal struct {
	name string
	// metrics are the names under which it is known, the newest first: the v1
	// engine, then what it was called before.
	metrics []string
	// gauge is the expression of a gauge over its selector; "" makes it a
	// counter.
	gauge string
}

// signals follows the metrics of vLLM. A pod with data parallelism has a series
// for each engine: counts are summed over them, fractions averaged.
func signals() []signal {
	sum, fraction := "sum(%s)", "sum(avg by (namespace, pod) (%s))"
	return []signal{
		{record.SignalWaiting, []string{"vllm:num_requests_waiting"}, sum},
		{record.SignalRunning, []string{"vllm:num_requests_running"}, sum},
		{record.SignalKVCacheUsage, []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}, fraction},
		{record.SignalReplicas, []string{"vllm:num_requests_running"}, "count(count by (namespace, pod) (%s))"},
		{record.SignalPreemptions, []string{"vllm:num_preemptions_total"}, ""},
		{record.SignalPrefixQueries, []string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"}, ""},
		{record.SignalPrefixHits, []string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"}, ""},
		{record.SignalPromptTokens, []string{"vllm:prompt_tokens_total"}, ""},
		{record.SignalGenerationTokens, []string{"vllm:generation_tokens_total"}, ""},
	}
}

// Window reads every signal over a window. A signal that the server does not
// have is nil in the result; missing then holds its query. Only samples that
// were scraped in the window count: gauges are read from one step after start,
// counters grow from their first sample in the window.
func (c *Client) Window(ctx context.Context, selector string, start, end time.Time, step time.Duration) (series map[string]*record.ServerSeries, missing map[string]string, err error) {
	series, missing = make(map[string]*record.ServerSeries), make(map[string]string)
	for _, one := range signals() {
		series[one.name] = nil
		for _, metric := range one.metrics {
			found, query, err := c.signal(ctx, one, metric+selector, start, end, step)
			if err != nil {
				return series, missing, err
			}
			if found != nil {
				series[one.name] = found
				delete(missing, one.name)
				break
			}
			missing[one.name] = cmp.Or(missing[one.name], query)
		}
	}
	return series, missing, nil
}

func (c *Client) signal(ctx context.Context, s signal, selected string, start, end time.Time, step time.Duration) (*record.ServerSeries, string, error) {
	if s.gauge == "" {
		query := fmt.Sprintf("sum(increase(%s[%s]))", selected, rangeOf(end.Sub(start)))
		result, err := c.Instant(ctx, query, end)
		if err != nil || len(result) == 0 || len(result[0].Samples) == 0 {
			return nil, query, err
		}
		return &record.ServerSeries{Query: query, Samples: 1, Increase: &result[0].Samples[0].Value}, query, nil
	}
	query := fmt.Sprintf(s.gauge, selected)
	if end.Sub(start) < 2*step {
		step = end.Sub(start) / 2
	}
	result, err := c.Range(ctx, query, start.Add(step), end, step)
	if err != nil || len(result) == 0 || len(result[0].Samples) == 0 {
		return nil, query, err
	}
	samples := result[0].Samples
	low, high, sum := samples[0].Value, samples[0].Value, 0.0
	for _, sample := range samples {
		low, high = min(low, sample.Value), max(high, sample.Value)
		sum += sample.Value
	}
	mean := sum / float64(len(samples))
	return &record.ServerSeries{Query: query, Samples: len(samples), Mean: &mean, Max: &high, Min: &low}, query, nil
}

// Selector selects the series of the pods that regex matches.
func Selector(namespace, regex string) string {
	var matchers []string
	if namespace != "" {
		matchers = append(matchers, "namespace="+strconv.Quote(namespace))
	}
	if regex != "" {
		matchers = append(matchers, "pod=~"+strconv.Quote(regex))
	}
	return "{" + strings.Join(matchers, ",") + "}"
}

// rangeOf writes a duration as PromQL does, in whole milliseconds.
func rangeOf(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms" }
