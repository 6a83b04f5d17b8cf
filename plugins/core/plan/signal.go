package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Signal says which of the envelope's signals a trigger's query reads, or why
// it is none of them. A query is recognised by the one engine series that it
// names and by what it makes of it; a form that gives another number than the
// envelope measured is refused, not guessed.
func Signal(trigger keda.Trigger) (signal, why string) {
	query := trigger.Query()
	if query == "" {
		return "", fmt.Sprintf("a %s trigger is not measured by bench", trigger.Type)
	}
	form := parse(query)
	switch len(form.series) {
	case 0:
		return "", "its query names no series that bench measures"
	case 1:
	default:
		return "", fmt.Sprintf("its query combines %d series", len(form.series))
	}
	// Red Hat's older monitors store every series with the prefix.
	switch name := strings.TrimPrefix(form.series[0], "kserve_"); name {
	case "vllm:num_requests_waiting":
		return summed(form, record.TriggerWaiting)
	case "vllm:num_requests_running":
		return summed(form, record.TriggerRunning)
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc":
		return summed(form, record.TriggerKV)
	case "vllm:e2e_request_latency_seconds_bucket":
		return quantile(form, record.TriggerP99E2E)
	case "vllm:time_to_first_token_seconds_bucket":
		return quantile(form, record.TriggerP99TTFT)
	case "vllm:request_inference_time_seconds_bucket":
		return "", "request_inference_time leaves out the time in the queue, so it cannot see a queue grow; ask e2e_request_latency instead"
	default:
		return "", fmt.Sprintf("bench does not measure %s", name)
	}
}

// summed accepts the sum over the replicas, of the moment or of its mean over
// time: with an AverageValue target the HPA divides by their number itself.
func summed(query form, signal string) (string, string) {
	if !query.plain() {
		return "", "its query calculates with the series; the envelope measured the plain sum(...)"
	}
	switch path := query.path(); path {
	case "sum", "sum/avg_over_time", "avg_over_time/sum":
	case "avg", "avg/avg_over_time", "avg_over_time/avg":
		return "", "its query is an average over the replicas, which the HPA divides by their number once more; write sum(...)"
	case "max", "max/avg_over_time", "avg_over_time/max":
		return "", "its query is the largest of the replicas, which does not add up; write sum(...)"
	default:
		if i := slices.IndexFunc(query.calls, func(c call) bool { return c.name != "sum" }); i >= 0 && strings.HasPrefix(path, "sum") {
			return "", fmt.Sprintf("its query takes %s, the envelope measured the mean over time", query.calls[i].name)
		}
		return "", "its query is not sum(...) over the replicas"
	}
	for _, call := range query.calls {
		if call.splits() {
			return "", "its query has a value for each replica, of which KEDA takes one only; write sum(...)"
		}
	}
	return signal, ""
}

// quantile accepts the 99th percentile of the requests of all replicas.
func quantile(query form, signal string) (string, string) {
	const want = "histogram_quantile(0.99, sum by (le) (rate(...)))"
	if !query.plain() {
		return "", "its query calculates with the series; the envelope measured the plain " + want
	}
	if len(query.calls) == 0 || query.calls[0].name != "histogram_quantile" {
		return "", "its query is not " + want
	}
	if rank, err := strconv.ParseFloat(query.calls[0].rank, 64); err != nil || rank != 0.99 {
		return "", "its query is not the 99th percentile that the envelope measured"
	}
	switch query.path() {
	case "histogram_quantile/sum/rate", "histogram_quantile/sum/increase":
	case "histogram_quantile/rate", "histogram_quantile/increase":
		return "", "its query has a percentile for each replica, of which KEDA takes one only; write " + want
	default:
		return "", "its query is not " + want
	}
	sum := query.calls[1]
	switch {
	case sum.grouping != "by" || !slices.Contains(sum.labels, "le"):
		return "", "its query does not keep the buckets apart; write " + want
	case sum.splits():
		return "", "its query has a percentile for each replica, of which KEDA takes one only; write " + want
	}
	return signal, ""
}
