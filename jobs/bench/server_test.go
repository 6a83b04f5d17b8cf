package bench_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

// promServer answers each query that contains a key with one value a step, or
// with the values that the key lists.
type promServer struct {
	values map[string][]float64
	status int
	asked  *time.Time
}

func (p promServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	if query == "vector(1)" {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		return
	}
	// A gauge of this moment is for who watches; the window's are ranges, and its
	// counters grow over one.
	watching := strings.HasSuffix(r.URL.Path, "/query") && !strings.Contains(query, "increase(")
	if !watching && p.asked != nil && p.asked.IsZero() {
		*p.asked = time.Now()
	}
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	result := "[]"
	for key, values := range p.values {
		if !strings.Contains(query, key) {
			continue
		}
		var points []string
		for i, v := range values {
			points = append(points, fmt.Sprintf(`[%d,"%v"]`, i, v))
		}
		result = fmt.Sprintf(`[{"metric":{},"values":[%s]}]`, strings.Join(points, ","))
	}
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":%s}}`, result)
}

// all is a server that has every signal.
func all() map[string][]float64 {
	return map[string][]float64{
		"sum(vllm:num_requests_waiting": {1, 3}, "sum(vllm:num_requests_running": {1, 1}, "kv_cache_usage_perc": {0.2, 0.4}, "count(count": {1, 1},
		"num_preemptions_total": {0}, "prefix_cache_queries_total": {1000}, "prefix_cache_hits_total": {0}, "prompt_tokens_total": {6400}, "generation_tokens_total": {1000},
	}
}

func TestServerSeries(t *testing.T) {
	with := func(key string, values ...float64) map[string][]float64 {
		m := all()
		if delete(m, key); values != nil {
			m[key] = values
		}
		return m
	}
	tests := map[string]struct {
		prometheus promServer
		required   []string
		reasons    string
		warnings   string
		text       string
	}{
		"all there":                  {prometheus: promServer{values: all()}},
		"optional signal is missing": {prometheus: promServer{values: with("prefix_cache_hits_total")}, warnings: "missing_signal"},
		"required signal is missing": {
			prometheus: promServer{values: with("sum(vllm:num_requests_waiting")}, required: []string{record.SignalWaiting},
			reasons: "missing_signal", text: `sum(vllm:num_requests_waiting{namespace="ns",pod=~"x-.*"})`,
		},
		"replicas changed":        {prometheus: promServer{values: with("count(count", 1, 2)}, reasons: "replicas_changed", text: "from 1 to 2"},
		"preempted":               {prometheus: promServer{values: with("num_preemptions_total", 3)}, warnings: "preemptions"},
		"cached vllm#54227":       {prometheus: promServer{values: with("prefix_cache_hits_total", 400)}, reasons: "prefix_cache", text: "40 %"},
		"a little cached":         {prometheus: promServer{values: with("prefix_cache_hits_total", 20)}, warnings: "prefix_cache"},
		"no answer":               {prometheus: promServer{status: 500}, warnings: "prometheus"},
		"no answer, but required": {prometheus: promServer{status: 500}, required: []string{record.SignalWaiting}, reasons: "prometheus"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked time.Time
				test.prometheus.asked = &asked
				p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1})
				p.Prometheus = &record.BenchPrometheus{URL: openaitest.URL, Namespace: "ns", PodRegex: "x-.*", ScrapeLagSeconds: 17, Required: test.required}
				engine := &server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}
				report, err := bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, engine), Prometheus: openaitest.Serve(t, test.prometheus)})
				if err != nil {
					t.Fatal(err)
				}
				one := report.Cases[0]
				if got := codes(one.Validity.Reasons); got != test.reasons {
					t.Errorf("reasons %q", got)
				}
				if got := codes(one.Validity.Warnings); test.reasons == "" && got != test.warnings {
					t.Errorf("warnings %q", got)
				}
				if !strings.Contains(fmt.Sprint(one.Validity.Reasons), test.text) {
					t.Errorf("reasons %+v", one.Validity.Reasons)
				}
				if lag := asked.Sub(one.Window.End); lag != 17*time.Second {
					t.Errorf("asked %v after the window", lag)
				}
				for _, signal := range record.BenchSignals() {
					if _, there := one.Server[signal]; !there {
						t.Errorf("signal %s is not in the report", signal)
					}
				}
				if waiting := one.Server[record.SignalWaiting]; waiting != nil && (*waiting.Mean != 2 || *waiting.Max != 3) {
					t.Errorf("waiting %+v", waiting)
				}
			})
		})
	}
}

// TestProgressForWatchers: who watches sees rates, latencies, errors by class and the
// server's own gauges while a case is under way, and failures in the words too.
func TestProgressForWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last record.Event
		p := plan(record.BenchCase{Name: "c2", PromptTokens: 64, OutputTokens: 2, Concurrency: 2})
		p.MaxErrorRate = 1
		p.Prometheus = &record.BenchPrometheus{URL: openaitest.URL, Namespace: "ns"}
		engine := &server{reply: func(i int64) http.Handler {
			if i%4 == 3 {
				return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(100 * ms)
					w.WriteHeader(http.StatusServiceUnavailable)
				})
			}
			return paced(100*ms, 50*ms, 2, 64)
		}}
		_, err := bench.Run(t.Context(), p, bench.Deps{
			HTTP: openaitest.Serve(t, engine), Prometheus: openaitest.Serve(t, promServer{values: all()}),
			Emit: func(event record.Event) {
				if event.Name == record.EventProgress && event.Fields["phase"] == "measure" {
					last = event
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]float64{"ttft_p50_seconds": 0.1, "ttft_p99_seconds": 0.1, "p50_seconds": 0.15, "waiting": 1, "kv_cache_usage": 0.2} {
			if got, ok := last.Fields[name].(float64); !ok || math.Abs(got-want) > 1e-3 {
				t.Errorf("%s is %v, want %v", name, last.Fields[name], want)
			}
		}
		// Of four requests in a row three take 150 ms, and one 100 ms.
		if rate, _ := last.Fields["requests_per_second"].(float64); math.Abs(rate-2*3/0.55) > 0.6 {
			t.Errorf("rate %v", rate)
		}
		failed, _ := last.Fields["errors"].(int)
		classes, _ := last.Fields["errors_by_class"].(map[record.ErrorClass]int)
		if failed == 0 || classes["http_503"] != failed || !strings.Contains(last.Message, fmt.Sprintf("%d FAILED (http_503 %d)", failed, failed)) {
			t.Errorf("%d failed, %v: %s", failed, classes, last.Message)
		}
	})
}

// A Prometheus that cannot be reached is found before anything is measured.
func TestPrometheusUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1})
		p.Prometheus = &record.BenchPrometheus{URL: openaitest.URL}
		engine := &server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}
		report, err := bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, engine), Prometheus: openaitest.Serve(t, http.NotFoundHandler())})
		if failure.KindOf(err) != failure.NotFound || len(report.Cases) != 0 {
			t.Errorf("got %v", err)
		}
	})
}
