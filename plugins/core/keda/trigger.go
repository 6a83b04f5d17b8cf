package keda

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// CompositeMetric is the one external metric of a ScaledObject with a formula.
const CompositeMetric = "composite-metric"

// MetricName is the name under which the HPA knows the trigger at index; ""
// for cpu and memory, which become resource metrics, and for types whose names
// depend on more than the trigger (status.externalMetricNames has those).
// The index counts all triggers.
func (t Trigger) MetricName(index int) string {
	if t.Type == "prometheus" {
		return fmt.Sprintf("s%d-prometheus", index)
	}
	return ""
}

// IsResource says whether the metrics server, not KEDA, serves the trigger.
func (t Trigger) IsResource() bool { return t.Type == "cpu" || t.Type == "memory" }

// TriggerOf returns the index of the trigger behind an external metric, by the
// number in its name; -1 where there is none.
func (s ScaledObject) TriggerOf(metric string) int {
	text, found := strings.CutPrefix(metric, "s")
	if !found {
		return -1
	}
	number, _, found := strings.Cut(text, "-")
	index, err := strconv.Atoi(number)
	if !found || err != nil || index < 0 || index >= len(s.Spec.Triggers) {
		return -1
	}
	return index
}

// Milli converts a threshold or a value to thousandths as KEDA 2.20 and later
// do: by its text with three decimals (half to even on the binary value);
// what is negative or no number becomes 0. Up to 2.16 KEDA truncated, so that
// 1.005 was 1004m.
func Milli(value float64) int64 {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return 0
	}
	text := strconv.FormatFloat(value, 'f', 3, 64)
	milli, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return milli
}

// Threshold is the trigger's threshold in thousandths; ok is false where it
// has none that is a number.
func (t Trigger) Threshold() (milli int64, ok bool) {
	return t.number("threshold")
}

// Activation is the activation threshold in thousandths, 0 unless set. A
// trigger is active above it, not at it.
func (t Trigger) Activation() int64 {
	milli, _ := t.number("activationThreshold")
	return milli
}

func (t Trigger) number(key string) (int64, bool) {
	value, err := strconv.ParseFloat(t.Metadata[key], 64)
	if err != nil || math.IsNaN(value) {
		return 0, false
	}
	return Milli(value), true
}

// Query is the Prometheus query, "" for other triggers.
func (t Trigger) Query() string {
	if t.Type != "prometheus" {
		return ""
	}
	return t.Metadata["query"]
}

// EmptyIsZero says whether an empty result is a healthy 0: the default.
func (t Trigger) EmptyIsZero() bool {
	text, given := t.Metadata["ignoreNullValues"]
	value, err := strconv.ParseBool(text)
	return !given || err != nil || value
}

// PerReplica says whether the HPA divides the value by the replica count.
func (t Trigger) PerReplica() bool { return t.MetricType == "" || t.MetricType == "AverageValue" }

// known maps what a query mentions to the words that people use for it. The
// first match decides.
func known() []struct{ pattern, label string } {
	return []struct{ pattern, label string }{
		{"num_requests_waiting|queue_req|queue_size|queue_depth", "queue depth"},
		{"kv_cache_usage|gpu_cache_usage|token_usage", "kv cache"},
		{"num_requests_running|running_req", "running requests"},
		{"time_to_first_token", "TTFT"},
		{"inter_token_latency|time_per_output_token", "ITL"},
		{"request_queue_time", "queue time"},
		{"e2e_request_latency|request_inference_time|_latency|_duration", "latency"},
		{"generation_tokens", "output tokens"},
		{"prompt_tokens", "prompt tokens"},
		{"DCGM_FI_DEV_GPU_UTIL", "GPU utilization"},
		{"wva_desired_replicas", "desired replicas"},
	}
}

// Label is what a person calls the trigger: its name, else a short name from
// the query, else its type.
func (t Trigger) Label() string {
	if t.Name != "" {
		return t.Name
	}
	query := t.Query()
	for _, entry := range known() {
		if matched, err := regexp.MatchString(entry.pattern, query); err == nil && matched {
			if quantile, ok := t.Quantile(); ok {
				return fmt.Sprintf("p%g %s", quantile*100, entry.label)
			}
			return entry.label
		}
	}
	if t.IsResource() && t.Metadata["containerName"] != "" {
		return t.Type + " of " + t.Metadata["containerName"]
	}
	return t.Type
}

// Quantile returns the quantile that the query computes with
// histogram_quantile; ok is false where it computes none.
func (t Trigger) Quantile() (quantile float64, ok bool) {
	_, rest, found := strings.Cut(t.Query(), "histogram_quantile(")
	if !found {
		return 0, false
	}
	text, _, found := strings.Cut(rest, ",")
	quantile, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return quantile, found && err == nil
}
