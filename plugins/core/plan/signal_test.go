package plan

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

const (
	seedWaiting = `sum(avg_over_time(vllm:num_requests_waiting{namespace="llm-serving", pod=~"deepseek-r1-14b.*"}[1m]))`
	seedKV      = `sum(vllm:kv_cache_usage_perc{namespace="llm-serving", pod=~"deepseek-r1-14b.*"})`
	seedLatency = `histogram_quantile(0.99, sum by (le) (rate(vllm:request_inference_time_seconds_bucket{namespace="llm-serving", pod=~"deepseek-r1-14b.*"}[5m])))`
	askE2E      = `histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket{pod=~"r1-.*"}[5m])))`
)

func prometheus(query string) keda.Trigger {
	return keda.Trigger{Type: "prometheus", Metadata: map[string]string{"query": query, "threshold": "2"}}
}

func TestSignalAccepts(t *testing.T) {
	tests := map[string]struct{ query, want string }{
		"the seed's queue depth":      {seedWaiting, record.TriggerWaiting},
		"the seed's KV cache":         {seedKV, record.TriggerKV},
		"older name of the KV cache":  {`sum(vllm:gpu_cache_usage_perc)`, record.TriggerKV},
		"running":                     {`sum(vllm:num_requests_running)`, record.TriggerRunning},
		"OpenShift's prefix":          {`sum(kserve_vllm:num_requests_waiting{llm_isvc_name="x"})`, record.TriggerWaiting},
		"grouped, one group":          {`sum by (model_name) (vllm:num_requests_waiting)`, record.TriggerWaiting},
		"grouped behind":              {`sum(vllm:num_requests_waiting) by (namespace, model_name)`, record.TriggerWaiting},
		"mean of the sum":             {`avg_over_time(sum(vllm:num_requests_waiting)[1m:15s])`, record.TriggerWaiting},
		"or zero":                     {`sum(vllm:num_requests_waiting{a="b"}) or vector(0)`, record.TriggerWaiting},
		"brackets that only group":    {`(sum((vllm:num_requests_waiting)))`, record.TriggerWaiting},
		"several lines and a comment": {"sum( # of all replicas\n  avg_over_time(\n    vllm:num_requests_waiting{a=\"b\"}[1m]\n  )\n)\n", record.TriggerWaiting},
		"colon in a label":            {`sum(vllm:num_requests_waiting{instance=~"engine:8000", job='a:b'})`, record.TriggerWaiting},
		"100 in a label":              {`sum(vllm:kv_cache_usage_perc{namespace="h100"})`, record.TriggerKV},
		"sign of a comment in label":  {`sum(vllm:kv_cache_usage_perc{pod=~"a#\"b}.*"})`, record.TriggerKV},
		"e2e":                         {askE2E, record.TriggerP99E2E},
		"e2e, other order":            {`histogram_quantile(.990, sum(increase(vllm:e2e_request_latency_seconds_bucket[5m])) by (le))`, record.TriggerP99E2E},
		"e2e by model":                {`histogram_quantile(0.99, sum by (model_name, le) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))`, record.TriggerP99E2E},
		"ttft":                        {`histogram_quantile(0.99, sum by(le)(rate(vllm:time_to_first_token_seconds_bucket[5m])))`, record.TriggerP99TTFT},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, why := Signal(prometheus(test.query)); got != test.want || why != "" {
				t.Errorf("got %q, %q, want %q", got, why, test.want)
			}
		})
	}
}

func TestSignalRefuses(t *testing.T) {
	const quantiles, inference = "histogram_quantile(0.99, sum by (le) (rate(", "leaves out the time in the queue"
	tests := map[string]struct{ query, why string }{
		"the seed's latency":          {seedLatency, inference},
		"other engine's series":       {`sum(DCGM_FI_DEV_GPU_UTIL)`, "names no series that bench measures"},
		"name as a label":             {`sum({__name__="vllm:num_requests_waiting"})`, "names no series that bench measures"},
		"series not measured":         {`sum(rate(vllm:prompt_tokens_total[1m]))`, "bench does not measure vllm:prompt_tokens_total"},
		"SGLang":                      {`sum(sglang:num_queue_reqs)`, "bench does not measure sglang:num_queue_reqs"},
		"two series":                  {`sum(vllm:num_requests_waiting) + sum(vllm:num_requests_running)`, "combines 2 series"},
		"per replica by hand":         {`sum(vllm:num_requests_waiting) / count(vllm:num_requests_waiting)`, "calculates with the series"},
		"divided by another's series": {`sum(vllm:num_requests_waiting) / scalar(kube_deployment_status_replicas)`, "calculates with the series"},
		"percent":                     {`sum(vllm:kv_cache_usage_perc) * 100`, "calculates with the series"},
		"percent inside":              {`sum(100 * vllm:kv_cache_usage_perc)`, "calculates with the series"},
		"an offset":                   {`sum(vllm:num_requests_waiting offset 5m)`, "calculates with the series"},
		"average":                     {`avg(vllm:kv_cache_usage_perc)`, "divides by their number once more"},
		"average over time":           {`avg(avg_over_time(vllm:kv_cache_usage_perc[1m]))`, "divides by their number once more"},
		"largest":                     {`max(vllm:kv_cache_usage_perc)`, "does not add up"},
		"bare":                        {`vllm:num_requests_waiting{pod="a"}`, "is not sum(...) over the replicas"},
		"time only":                   {`avg_over_time(vllm:num_requests_waiting[1m])`, "is not sum(...) over the replicas"},
		"peak over time":              {`sum(max_over_time(vllm:num_requests_waiting[1m]))`, "takes max_over_time, the envelope measured the mean"},
		"growth":                      {`sum(deriv(vllm:num_requests_waiting[1m]))`, "takes deriv"},
		"by pod":                      {`sum by (pod) (vllm:num_requests_waiting)`, "a value for each replica"},
		"by instance, behind":         {`sum(vllm:num_requests_waiting) by (instance)`, "a value for each replica"},
		"without":                     {`sum without (job) (vllm:num_requests_waiting)`, "a value for each replica"},
		"open bracket":                {`sum(vllm:num_requests_waiting`, "calculates with the series"},
		"milliseconds":                {askE2E + ` * 1000`, "calculates with the series"},
		"other percentile":            {strings.Replace(askE2E, "0.99", "0.95", 1), "not the 99th percentile"},
		"percentile that begins alike": {strings.Replace(askE2E, "0.99", "0.999", 1),
			"not the 99th percentile"},
		"percentile that is no number": {strings.Replace(askE2E, "0.99", "scalar(x)", 1), "not the 99th percentile"},
		"largest percentile":           {`max(` + askE2E + `)`, "is not " + quantiles},
		"each replica's":               {`histogram_quantile(0.99, rate(vllm:e2e_request_latency_seconds_bucket[5m]))`, "a percentile for each replica"},
		"by le and pod":                {strings.Replace(askE2E, "(le)", "(le, pod)", 1), "a percentile for each replica"},
		"without le":                   {strings.Replace(askE2E, "sum by (le)", "sum", 1), "keep the buckets apart"},
		"no rate":                      {`histogram_quantile(0.99, sum by (le) (vllm:e2e_request_latency_seconds_bucket))`, "is not " + quantiles},
		"share of fast requests":       {`sum(rate(vllm:e2e_request_latency_seconds_bucket{le="30"}[5m]))`, "is not " + quantiles},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, why := Signal(prometheus(test.query)); got != "" || !strings.Contains(why, test.why) {
				t.Errorf("got %q, %q, want %q", got, why, test.why)
			}
		})
	}
	if got, why := Signal(keda.Trigger{Type: "cpu", Metadata: map[string]string{"value": "80"}}); got != "" || why != "a cpu trigger is not measured by bench" {
		t.Errorf("got %q, %q", got, why)
	}
}

// A query is written by others: whatever it is, reading it ends.
func FuzzSignal(f *testing.F) {
	for _, query := range []string{seedWaiting, seedKV, seedLatency, askE2E, "", "((((", "sum by(", "a:b)(", `"`, "sum()", "()", "or vector(0)"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		signal, why := Signal(prometheus(query))
		if (signal == "") == (why == "") {
			t.Errorf("%q: got %q, %q", query, signal, why)
		}
	})
}
