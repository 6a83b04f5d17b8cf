package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/prom"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end   = start.Add(time.Minute)
)

// server answers the queries that contain a key of answers with its result, and
// all others with an empty one. seen holds what was asked.
func server(t *testing.T, answers map[string]string, seen map[string]string) *prom.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		kind := "vector"
		if strings.HasSuffix(r.URL.Path, "_range") {
			kind = "matrix"
		}
		if seen != nil {
			seen[query] = strings.Join([]string{r.URL.Path, r.FormValue("time"), r.FormValue("start"), r.FormValue("end"), r.FormValue("step")}, " ")
		}
		result := "[]"
		for key, answer := range answers {
			if strings.Contains(query, key) {
				result = answer
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result)
	}))
	t.Cleanup(s.Close)
	return &prom.Client{HTTP: s.Client(), URL: s.URL + "/"}
}

func TestWindow(t *testing.T) {
	seen := map[string]string{}
	client := server(t, map[string]string{
		"num_requests_waiting":    `[{"metric":{},"values":[[1,"0"],[2,"4"],[3,"2"],[4,"NaN"]]}]`,
		"gpu_cache_usage_perc":    `[{"metric":{},"values":[[1,"0.5"]]}]`,
		"num_preemptions_total":   `[{"metric":{},"value":[1,"0"]}]`,
		"generation_tokens_total": `[{"metric":{},"value":[1,"1234.5"]}]`,
	}, seen)
	series, missing, err := client.Window(t.Context(), prom.Selector("ns", "a.*"), start, end, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	f := func(v float64) *float64 { return &v }
	want := map[string]*record.ServerSeries{
		record.SignalWaiting:          {Query: `sum(vllm:num_requests_waiting{namespace="ns",pod=~"a.*"})`, Samples: 3, Mean: f(2), Max: f(4), Min: f(0)},
		record.SignalKVCacheUsage:     {Query: `sum(avg by (namespace, pod) (vllm:gpu_cache_usage_perc{namespace="ns",pod=~"a.*"}))`, Samples: 1, Mean: f(0.5), Max: f(0.5), Min: f(0.5)},
		record.SignalPreemptions:      {Query: `sum(increase(vllm:num_preemptions_total{namespace="ns",pod=~"a.*"}[60000ms]))`, Samples: 1, Increase: f(0)},
		record.SignalGenerationTokens: {Query: `sum(increase(vllm:generation_tokens_total{namespace="ns",pod=~"a.*"}[60000ms]))`, Samples: 1, Increase: f(1234.5)},
		record.SignalRunning:          nil, record.SignalReplicas: nil, record.SignalPrefixHits: nil, record.SignalPrefixQueries: nil, record.SignalPromptTokens: nil,
	}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	// What is absent is named by the query of its newest metric; what was found
	// under an old name is not absent.
	if len(missing) != 5 || !strings.Contains(missing[record.SignalPrefixHits], "vllm:prefix_cache_hits_total") {
		t.Errorf("missing %v", missing)
	}
	// Samples of before the window are not in it: gauges start a step later.
	if got := seen[want[record.SignalWaiting].Query]; got != "/api/v1/query_range  1767323050.000 1767323105.000 5" {
		t.Errorf("range query %q", got)
	}
	if got := seen[want[record.SignalPreemptions].Query]; got != "/api/v1/query 1767323105.000   " {
		t.Errorf("instant query %q", got)
	}
	if _, asked := seen[strings.Replace(want[record.SignalKVCacheUsage].Query, "gpu_", "kv_", 1)]; !asked {
		t.Error("the name of today was not asked for first")
	}
}

// A window that is shorter than two steps is read at its middle and its end.
func TestShortWindow(t *testing.T) {
	seen := map[string]string{}
	client := server(t, nil, seen)
	if _, _, err := client.Window(t.Context(), "{}", start, start.Add(4*time.Second), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := seen["sum(vllm:num_requests_waiting{})"]; got != "/api/v1/query_range  1767323047.000 1767323049.000 2" {
		t.Errorf("query %q", got)
	}
}

func TestSelector(t *testing.T) {
	for want, got := range map[string]string{
		`{namespace="n",pod=~"a\\.b"}`: prom.Selector("n", `a\.b`), `{pod=~"x"}`: prom.Selector("", "x"), `{}`: prom.Selector("", ""),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   failure.Kind
		text   string
	}{
		"not allowed":   {403, "no", failure.Denied, "403"},
		"not the API":   {404, "no", failure.NotFound, "404"},
		"bad query":     {400, `{"status":"error","error":"parse error"}`, failure.Failed, "parse error"},
		"not JSON":      {502, "<html>", failure.Failed, "502"},
		"scalar":        {200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, failure.Failed, "scalar"},
		"broken sample": {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}`, failure.Failed, "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer token" {
					t.Error("no token")
				}
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer s.Close()
			client := &prom.Client{HTTP: s.Client(), URL: s.URL, Token: "token"}
			if err := client.Ready(t.Context()); failure.KindOf(err) != test.want || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	if err := (&prom.Client{HTTP: http.DefaultClient, URL: s.URL}).Ready(t.Context()); failure.KindOf(err) != failure.Unreachable {
		t.Errorf("got %v", err)
	}
}

func TestRangeLabels(t *testing.T) {
	client := server(t, map[string]string{"up": `[{"metric":{"pod":"a"},"values":[[1.5,"1"],[2,"+Inf"],[3,"2"]]}]`}, nil)
	series, err := client.Range(t.Context(), "up", start, end, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := []prom.Series{{Labels: map[string]string{"pod": "a"}, Samples: []prom.Sample{{Time: time.UnixMilli(1500).UTC(), Value: 1}, {Time: time.UnixMilli(3000).UTC(), Value: 2}}}}
	if diff := cmp.Diff(want, series); diff != "" {
		t.Error(diff)
	}
}
