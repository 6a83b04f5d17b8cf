package engine_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// One request of 200 prompt and 3 output tokens, alone. The scrape is compared as a whole, except for help texts, the
// buckets and the sums of times, which have a test of their own.
func TestScrapeAfterOneRequest(t *testing.T) {
	_, url := start(t, engine.Config{Names: []string{"m"}})
	post(t, url+"/v1/completions", distinct(1, 200, 3))
	var got []string
	for line := range strings.Lines(do(t, http.MethodGet, url+"/metrics", "").body) {
		name, _, _ := strings.Cut(line, "{")
		switch {
		case strings.HasPrefix(line, "# HELP"), strings.HasSuffix(name, "_bucket"), strings.HasSuffix(name, "_seconds_sum"):
		case strings.Contains(line, "http_requests_total"):
			// Counted when the handler returns, which may be after the client has read the end of the answer.
		default:
			got = append(got, strings.TrimSpace(strings.ReplaceAll(line, `engine="0",model_name="m"`, "M")))
		}
	}
	want := strings.Split(`# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",gpu_memory_utilization="0.9",num_gpu_blocks="3513"} 1
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_count{M} 1
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{M} 3
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_count{M} 2
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{M} 202
vllm:iteration_tokens_total_count{M} 3
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{M} 0
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{M} 0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{M} 0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{M} 0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{M} 0
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{M} 200
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{M} 200
# TYPE vllm:request_decode_time_seconds histogram
vllm:request_decode_time_seconds_count{M} 1
# TYPE vllm:request_generation_tokens histogram
vllm:request_generation_tokens_sum{M} 3
vllm:request_generation_tokens_count{M} 1
# TYPE vllm:request_inference_time_seconds histogram
vllm:request_inference_time_seconds_count{M} 1
# TYPE vllm:request_prefill_time_seconds histogram
vllm:request_prefill_time_seconds_count{M} 1
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_sum{M} 200
vllm:request_prompt_tokens_count{M} 1
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_count{M} 1
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 0
vllm:request_success_total{engine="0",finished_reason="error",model_name="m"} 0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 1
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 0
# TYPE vllm:request_time_per_output_token_seconds histogram
vllm:request_time_per_output_token_seconds_count{M} 1
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_count{M} 1`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scrape (-want +got):\n%s", diff)
	}
}

func TestHTTPRequestsTotal(t *testing.T) {
	virtual(t, engine.Config{}, func(t *testing.T, e *engine.Engine, client *http.Client) {
		for _, body := range []string{`{"prompt":"x"}`, `{"prompt":"x"}`, `{"prompt":""}`} {
			if err := patience(t, client, body); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		var got []string
		recorder := httptest.NewRecorder()
		e.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(recorder.Body.String()) {
			if strings.HasPrefix(line, "http_requests_total") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		want := []string{
			`http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 2`,
			`http_requests_total{handler="/v1/completions",method="POST",status="4xx"} 1`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// histogram is what is left of a histogram family for comparison.
type histogram struct {
	Count uint64
	Sum   float64
	First float64 // lowest bucket
	Last  float64 // highest finite bucket
	Size  int     // finite buckets
}

func TestLatencyHistograms(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, url := start(t, engine.Config{Names: []string{"m"}, Registry: registry, Speed: 2})
	post(t, url+"/v1/completions", distinct(1, 200, 3))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]histogram{}
	for _, f := range families {
		h := f.GetMetric()[0].GetHistogram()
		if h == nil {
			continue
		}
		b := h.GetBucket()
		got[f.GetName()] = histogram{
			h.GetSampleCount(), h.GetSampleSum(), b[0].GetUpperBound(), b[len(b)-1].GetUpperBound(), len(b),
		}
	}
	// Real seconds: half of the engine time at speed 2.
	want := map[string]histogram{
		"vllm:time_to_first_token_seconds":           {1, 0.0407, 0.001, 2560, 22},
		"vllm:inter_token_latency_seconds":           {2, 0.0214, 0.01, 80, 19},
		"vllm:request_time_per_output_token_seconds": {1, 0.0107, 0.01, 80, 19},
		"vllm:e2e_request_latency_seconds":           {1, 0.0621, 0.3, 7680, 21},
		"vllm:request_queue_time_seconds":            {1, 0, 0.3, 7680, 21},
		"vllm:request_inference_time_seconds":        {1, 0.0621, 0.3, 7680, 21},
		"vllm:request_prefill_time_seconds":          {1, 0.0407, 0.3, 7680, 21},
		"vllm:request_decode_time_seconds":           {1, 0.0214, 0.3, 7680, 21},
		"vllm:request_prompt_tokens":                 {1, 200, 1, 10000, 13},
		"vllm:request_generation_tokens":             {1, 3, 1, 10000, 13},
		"vllm:iteration_tokens_total":                {3, 202, 1, 16384, 13},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("histograms (-want +got):\n%s", diff)
	}
}

// Queue, prefill and decode add up, and inference leaves the queue out.
func TestQueueTimeIsNotInferenceTime(t *testing.T) {
	c := model.Default()
	c.MaxNumSeqs = 1
	registry := prometheus.NewRegistry()
	virtual(t, engine.Config{Model: c, Registry: registry}, func(t *testing.T, _ *engine.Engine, client *http.Client) {
		first, err := send(t.Context(), client, distinct(1, 10, 100))
		if err != nil {
			t.Fatal(err)
		}
		defer first.Body.Close()
		if err := patience(t, client, distinct(2, 10, 100)); err != nil {
			t.Fatal(err)
		}
	})
	sum := func(name string) float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == name {
				return f.GetMetric()[0].GetHistogram().GetSampleSum()
			}
		}
		t.Fatalf("no %s", name)
		return 0
	}
	queue, inference, e2e := sum("vllm:request_queue_time_seconds"), sum("vllm:request_inference_time_seconds"), sum("vllm:e2e_request_latency_seconds")
	// Each runs 0.0244 + 99*0.0214 s; the second arrives with the first token of the first, and waits for the rest.
	if want := 2 * (0.0244 + 99*0.0214); inference < want-1e-6 || inference > want+1e-6 {
		t.Errorf("inference time %.4f, want %.4f", inference, want)
	}
	if want := 99 * 0.0214; queue < want-1e-6 || queue > want+1e-6 {
		t.Errorf("queue time %.4f, want %.4f", queue, want)
	}
	if d := e2e - queue - inference; d < -1e-6 || d > 1e-6 {
		t.Errorf("end to end %.4f is not queue %.4f and inference %.4f", e2e, queue, inference)
	}
}

func TestPins(t *testing.T) {
	_, url := start(t, engine.Config{Names: []string{"m"}, Admin: true})
	gauges := func() map[string]string {
		got := map[string]string{}
		for line := range strings.Lines(do(t, http.MethodGet, url+"/metrics", "").body) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), `{engine="0",model_name="m"} `)
			switch name {
			case "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc":
				got[strings.TrimPrefix(name, "vllm:")] = value
			}
		}
		return got
	}
	if r := do(t, http.MethodPut, url+"/admin/pins", `{"waiting":3,"kv_cache_usage":0.8}`); r.status != http.StatusNoContent {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	want := map[string]string{"num_requests_running": "0", "num_requests_waiting": "3", "kv_cache_usage_perc": "0.8"}
	if diff := cmp.Diff(want, gauges()); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	if r := do(t, http.MethodPut, url+"/admin/pins", `{"wating":3}`); r.status != http.StatusBadRequest {
		t.Errorf("a misspelt pin: status %d", r.status)
	}
	do(t, http.MethodDelete, url+"/admin/pins", "")
	want = map[string]string{"num_requests_running": "0", "num_requests_waiting": "0", "kv_cache_usage_perc": "0"}
	if diff := cmp.Diff(want, gauges()); diff != "" {
		t.Errorf("unpinned (-want +got):\n%s", diff)
	}
}

func TestAdmin(t *testing.T) {
	_, url := start(t, engine.Config{Admin: true, Speed: 10})
	post(t, url+"/v1/completions", distinct(1, 64, 4))
	state := decode[engine.State](t, do(t, http.MethodGet, url+"/admin/state", "").body)
	if state.Totals.Finished != 1 || state.Totals.GenerationTokens != 4 || state.Totals.PromptTokens != 64 {
		t.Errorf("state %+v", state)
	}
	capacity := decode[engine.Capacity](t, do(t, http.MethodGet, url+"/admin/capacity?concurrency=20&input=1024&output=128", "").body)
	if x := capacity.Throughput; x < 14.7 || x > 15.4 || capacity.SaturationBatch != 40 {
		t.Errorf("capacity %+v", capacity)
	}
	if r := do(t, http.MethodPut, url+"/admin/faults", `[{"status":503,"times":1}]`); r.status != http.StatusNoContent {
		t.Fatalf("set faults: %d %s", r.status, r.body)
	}
	if r := post(t, url+"/v1/completions", distinct(2, 64, 4)); r.status != http.StatusServiceUnavailable {
		t.Errorf("status %d under a fault", r.status)
	}
	do(t, http.MethodPut, url+"/admin/faults", `[{"status":503}]`)
	do(t, http.MethodDelete, url+"/admin/faults", "")
	if r := post(t, url+"/v1/completions", distinct(3, 64, 4)); r.status != http.StatusOK {
		t.Errorf("status %d after the faults were cleared", r.status)
	}
	if r := do(t, http.MethodPut, url+"/admin/faults", `[{"stauts":503}]`); r.status != http.StatusBadRequest {
		t.Errorf("a misspelt fault: status %d", r.status)
	}
	if r := post(t, url+"/reset_prefix_cache", ""); r.status != http.StatusOK {
		t.Errorf("reset prefix cache: status %d", r.status)
	}
}
