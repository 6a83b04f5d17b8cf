package plan

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Signal says which of the envelope's signals a trigger's query reads, or why
// it is none of them. A query is recognised by the series it names; a form that
// gives another number than the envelope measured is refused, not guessed.
func Signal(trigger keda.Trigger) (signal, why string) {
	query := trigger.Query()
	if query == "" {
		return "", fmt.Sprintf("a %s trigger is not measured by bench", trigger.Type)
	}
	series := seriesOf(query)
	if len(series) != 1 {
		return "", fmt.Sprintf("its query combines %d series", len(series))
	}
	switch name := strings.TrimPrefix(series[0], "kserve_"); name {
	case "vllm:num_requests_waiting":
		return summed(query, record.TriggerWaiting)
	case "vllm:num_requests_running":
		return summed(query, record.TriggerRunning)
	case "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc":
		if strings.Contains(query, "100") {
			return "", "its query seems to be in percent, the envelope measured a fraction"
		}
		return summed(query, record.TriggerKV)
	case "vllm:e2e_request_latency_seconds_bucket":
		return quantile(query, record.TriggerP99E2E)
	case "vllm:time_to_first_token_seconds_bucket":
		return quantile(query, record.TriggerP99TTFT)
	case "vllm:request_inference_time_seconds_bucket":
		return "", "request_inference_time leaves out the time in the queue, so it cannot see a queue grow; ask e2e_request_latency instead"
	default:
		return "", fmt.Sprintf("bench does not measure %s", name)
	}
}

// summed accepts sum(...) over the replicas: with an AverageValue target the
// HPA divides by their number itself.
func summed(query, signal string) (string, string) {
	text := strings.TrimSpace(query)
	switch {
	case strings.HasPrefix(text, "sum"):
		return signal, ""
	case strings.HasPrefix(text, "avg"):
		return "", "its query is an average over the replicas, which the HPA divides by their number once more; write sum(...)"
	case strings.HasPrefix(text, "max"):
		return "", "its query is the largest of the replicas, which does not add up; write sum(...)"
	}
	return "", "its query is not sum(...) over the replicas"
}

var quantilePattern = regexp.MustCompile(`^histogram_quantile\(\s*(0?\.99)0*\s*,`)

func quantile(query, signal string) (string, string) {
	if quantilePattern.MatchString(strings.TrimSpace(query)) {
		return signal, ""
	}
	return "", "its query is not the 99th percentile that the envelope measured"
}

var seriesPattern = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*:[a-zA-Z0-9_:]+`)

// seriesOf returns the engine series that a query names, each once.
func seriesOf(query string) []string {
	var names []string
	seen := map[string]bool{}
	for _, name := range seriesPattern.FindAllString(query, -1) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
