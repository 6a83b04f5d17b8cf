package record

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

func validBenchPlan() BenchPlan {
	return BenchPlan{
		TypeMeta: Meta(KindBenchPlan), Run: "r",
		Target:        BenchTarget{URL: "http://engine:8080", API: APICompletions},
		Cases:         []BenchCase{{Name: "c1", PromptTokens: 1024, OutputTokens: 128, Concurrency: 1}},
		WarmupSeconds: 30, DurationSeconds: 480, RequestTimeoutSeconds: 380, Temperature: 0.2, Stream: true, Seed: 7,
		SLOs:       []BenchSLO{{Metric: MetricE2E, Percentile: 99, MaxSeconds: 30}},
		Prometheus: &BenchPrometheus{URL: "http://prometheus:9090", Namespace: "ns", PodRegex: "x-.*", ScrapeLagSeconds: 15, Required: []string{SignalWaiting}},
	}
}

func TestBenchPlanValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*BenchPlan)
		want   string
	}{
		"valid":             {func(*BenchPlan) {}, ""},
		"no Prometheus":     {func(p *BenchPlan) { p.Prometheus = nil }, ""},
		"no URL":            {func(p *BenchPlan) { p.Target.URL = "" }, "target.url"},
		"no scheme":         {func(p *BenchPlan) { p.Target.URL = "engine:8080" }, "target.url"},
		"unknown API":       {func(p *BenchPlan) { p.Target.API = "embeddings" }, "target.api"},
		"no duration":       {func(p *BenchPlan) { p.DurationSeconds = 0 }, "duration_seconds"},
		"no timeout":        {func(p *BenchPlan) { p.RequestTimeoutSeconds = 0 }, "request_timeout_seconds"},
		"negative warm-up":  {func(p *BenchPlan) { p.WarmupSeconds = -1 }, "below 0"},
		"error rate":        {func(p *BenchPlan) { p.MaxErrorRate = 1.5 }, "max_error_rate"},
		"no case":           {func(p *BenchPlan) { p.Cases = nil }, "no case"},
		"no concurrency":    {func(p *BenchPlan) { p.Cases[0].Concurrency = 0 }, `case "c1"`},
		"no name":           {func(p *BenchPlan) { p.Cases[0].Name = "" }, "no name"},
		"case twice":        {func(p *BenchPlan) { p.Cases = append(p.Cases, p.Cases[0]) }, "twice"},
		"unknown objective": {func(p *BenchPlan) { p.SLOs[0].Metric = "p99" }, `objective "p99"`},
		"objective of 0":    {func(p *BenchPlan) { p.SLOs[0].MaxSeconds = 0 }, "max_seconds"},
		"Prometheus URL":    {func(p *BenchPlan) { p.Prometheus.URL = "x" }, "prometheus.url"},
		"unknown signal":    {func(p *BenchPlan) { p.Prometheus.Required = []string{"gpu"} }, `signal "gpu"`},
		"negative lag":      {func(p *BenchPlan) { p.Prometheus.ScrapeLagSeconds = -1 }, "below 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := validBenchPlan()
			test.change(&plan)
			err := plan.Validate()
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || failure.KindOf(err) != failure.Usage {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBenchPlanRoundTrip(t *testing.T) {
	plan := validBenchPlan()
	data, err := Encode(plan)
	if err != nil {
		t.Fatal(err)
	}
	var again BenchPlan
	if err := Decode(data, KindBenchPlan, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, again); diff != "" {
		t.Error(diff)
	}
	if got := plan.TotalSeconds(); got != 525 {
		t.Errorf("total %v", got)
	}
	if got := plan.Cases[0].Shape(); got != "1024/128" {
		t.Errorf("shape %q", got)
	}
}

// Unknown is null in a report, never 0.
func TestCaseReportUnknownIsNull(t *testing.T) {
	data, err := Encode(CaseReport{Server: map[string]*ServerSeries{SignalWaiting: nil}})
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	ttft := report["latency"].(map[string]any)["ttft"].(map[string]any)
	for _, name := range []string{"mean_seconds", "p50_seconds", "p99_seconds", "p99_high_seconds", "histogram"} {
		if value, there := ttft[name]; !there || value != nil {
			t.Errorf("ttft.%s is %v", name, value)
		}
	}
	if value, there := report["server"].(map[string]any)[SignalWaiting]; !there || value != nil {
		t.Errorf("server.waiting is %v", value)
	}
	if value := report["client"].(map[string]any)["throttled_periods"]; value != nil {
		t.Errorf("throttled_periods is %v", value)
	}
}

func TestErrorRate(t *testing.T) {
	for want, counts := range map[float64]CaseCounts{0: {}, 0.25: {Started: 4, Failed: 1}} {
		if got := counts.ErrorRate(); math.Abs(got-want) > 1e-12 {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestRequestHeaderDescribesEveryField(t *testing.T) {
	header := NewRequestHeader("r", "v1", time.Unix(1, 0))
	if len(header.Fields) != reflect.TypeFor[RequestRecord]().NumField() {
		t.Errorf("%d fields", len(header.Fields))
	}
	data, err := json.Marshal(RequestRecord{})
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(data, &names); err != nil {
		t.Fatal(err)
	}
	for _, field := range header.Fields {
		if _, there := names[field.Name]; !there || field.Type == "" || field.Meaning == "" {
			t.Errorf("field %+v", field)
		}
	}
}

func TestReadRequests(t *testing.T) {
	var file bytes.Buffer
	write := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(append(data, '\n'))
	}
	header := NewRequestHeader("r", "v1", time.Unix(1, 0))
	write(header)
	one := RequestRecord{Case: "c", ID: math.MaxUint64, Gaps: []int64{1, 2}, Flags: []string{}}
	failed := RequestRecord{Case: "c", Error: StatusClass(503), Gaps: []int64{}, Flags: []string{}}
	write(one)
	write(failed)
	whole := file.String()
	tests := map[string]struct {
		file string
		want []RequestRecord
		err  string
	}{
		"whole":                 {whole, []RequestRecord{one, failed}, ""},
		"last line cut off":     {whole[:len(whole)-20], []RequestRecord{one}, ""},
		"last line without LF":  {strings.TrimSuffix(whole, "\n"), []RequestRecord{one, failed}, ""},
		"damaged in the middle": {strings.Replace(whole, `"case":"c"`, `"case":`, 1), nil, "line 2"},
		"another document":      {`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"BenchPlan"}` + "\n", nil, "BenchPlan"},
		"empty":                 {"", nil, "not a JSON document"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, records, err := ReadRequests(strings.NewReader(test.file))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(header, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.want, records); diff != "" {
				t.Error(diff)
			}
		})
	}
	if one.Succeeded() == failed.Succeeded() || failed.Error != "http_503" {
		t.Error("success is not told from failure")
	}
	if _, _, err := ReadRequests(brokenReader{}); err == nil {
		t.Error("a read error was lost")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, os.ErrClosed }
