package keda

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, text string) ScaledObject {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	so, err := Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return so
}

func TestDefaults(t *testing.T) {
	so := parse(t, `{"metadata":{"name":"x"},"spec":{"scaleTargetRef":{"name":"w"}}}`)
	if so.Min() != 0 || so.HPAMin() != 1 || so.Max() != 100 || so.PollingInterval() != 30*time.Second || so.Cooldown() != 300*time.Second || so.HPAName() != "keda-hpa-x" {
		t.Errorf("got %d %d %d %v %v %s", so.Min(), so.HPAMin(), so.Max(), so.PollingInterval(), so.Cooldown(), so.HPAName())
	}
	if diff := cmp.Diff(TargetRef{"apps/v1", "Deployment", "w"}, so.Target()); diff != "" {
		t.Error(diff)
	}
	if so.Composite() {
		t.Error("no formula, no composite metric")
	}
}

func TestHPAName(t *testing.T) {
	tests := map[string]string{
		`{"metadata":{"name":"x"},"status":{"hpaName":"old"}}`:                                                                              "old",
		`{"metadata":{"name":"x"},"spec":{"advanced":{"horizontalPodAutoscalerConfig":{"name":"mine"}}}}`:                                   "mine",
		`{"metadata":{"name":"x"},"spec":{"advanced":{"scalingModifiers":{},"horizontalPodAutoscalerConfig":{"behavior":{"scaleUp":{}}}}}}`: "keda-hpa-x",
	}
	for text, want := range tests {
		if got := parse(t, text).HPAName(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestPause(t *testing.T) {
	four := int32(4)
	tests := map[string]struct {
		annotations map[string]string
		want        Pause
	}{
		"none":                    {nil, Pause{}},
		"paused":                  {map[string]string{annotationPaused: "true"}, Pause{All: true}},
		"not paused":              {map[string]string{annotationPaused: "false"}, Pause{}},
		"no boolean is true":      {map[string]string{annotationPaused: "yes please"}, Pause{All: true}},
		"empty is true":           {map[string]string{annotationPaused: ""}, Pause{All: true}},
		"at a size":               {map[string]string{annotationPausedReplicas: "4"}, Pause{All: true, Replicas: &four}},
		"a size decides over not": {map[string]string{annotationPausedReplicas: "4", annotationPaused: "false"}, Pause{All: true, Replicas: &four}},
		"a size that is none":     {map[string]string{annotationPausedReplicas: "many"}, Pause{All: true}},
		"in":                      {map[string]string{annotationPausedScaleIn: "true"}, Pause{In: true}},
		"out":                     {map[string]string{annotationPausedScaleOut: "true"}, Pause{Out: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := ScaledObject{Metadata: Metadata{Annotations: test.annotations}}
			if diff := cmp.Diff(test.want, so.Pause()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMilli(t *testing.T) {
	tests := map[string]struct {
		value float64
		want  int64
	}{
		"whole":            {2, 2000},
		"kv":               {0.75, 750},
		"0.0015 rounds up": {0.0015, 2},
		"1.005 is 1.00499": {1.005, 1005},
		"negative":         {-1, 0},
		"no number":        {math.NaN(), 0},
		"infinite":         {math.Inf(1), 0},
		"below half":       {0.0004, 0},
		"too large":        {1e300, math.MaxInt64},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Milli(test.value); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTriggerOf(t *testing.T) {
	so := ScaledObject{Spec: Spec{Triggers: make([]Trigger, 3)}}
	tests := map[string]int{
		"s0-prometheus": 0, "s2-cron-UTC-00-59": 2, "s3-prometheus": -1, "s-1-x": -1, "prometheus": -1, "composite-metric": -1, "s1": -1, "": -1,
	}
	for name, want := range tests {
		if got := so.TriggerOf(name); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
}

func TestLabel(t *testing.T) {
	tests := map[string]struct {
		trigger Trigger
		want    string
	}{
		"own name":     {Trigger{Type: "prometheus", Name: "waiting", Metadata: map[string]string{"query": "sum(x)"}}, "waiting"},
		"queue":        {Trigger{Type: "prometheus", Metadata: map[string]string{"query": `sum(vllm:num_requests_waiting{namespace="n"})`}}, "queue depth"},
		"kv":           {Trigger{Type: "prometheus", Metadata: map[string]string{"query": "sum(vllm:kv_cache_usage_perc)"}}, "kv cache"},
		"p99 latency":  {Trigger{Type: "prometheus", Metadata: map[string]string{"query": "histogram_quantile(0.99, sum by (le) (rate(vllm:request_inference_time_seconds_bucket[5m])))"}}, "p99 latency"},
		"p99.9 TTFT":   {Trigger{Type: "prometheus", Metadata: map[string]string{"query": "histogram_quantile( 0.999 , vllm:time_to_first_token_seconds_bucket)"}}, "p99.9 TTFT"},
		"no known one": {Trigger{Type: "prometheus", Metadata: map[string]string{"query": "up"}}, "prometheus"},
		"cpu":          {Trigger{Type: "cpu"}, "cpu"},
		"a container":  {Trigger{Type: "cpu", Metadata: map[string]string{"containerName": "main"}}, "cpu of main"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.trigger.Label(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTriggerNumbers(t *testing.T) {
	trigger := Trigger{Type: "prometheus", Metadata: map[string]string{"threshold": "0.75", "activationThreshold": "2"}}
	if got, ok := trigger.Threshold(); got != 750 || !ok {
		t.Errorf("got %d %v", got, ok)
	}
	if trigger.Activation() != 2000 || !trigger.EmptyIsZero() || !trigger.PerReplica() || trigger.MetricName(2) != "s2-prometheus" {
		t.Errorf("got %+v", trigger)
	}
	trigger.Metadata["ignoreNullValues"], trigger.Metadata["threshold"] = "false", "abc"
	if _, ok := trigger.Threshold(); ok || trigger.EmptyIsZero() {
		t.Error("a threshold must be a number, and ignoreNullValues is off")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"x"},"spec":{"triggers":[{"type":"prometheus","metadata":{"threshold":"2","query":"sum(x)"}}]}}`))
	f.Add([]byte(`{"spec":{"triggers":7}}`))
	f.Add([]byte(`{"status":{"lastActiveTime":"no time"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			return
		}
		so, err := Parse(content)
		if err != nil {
			return
		}
		for i, trigger := range so.Spec.Triggers {
			_, _ = trigger.Threshold()
			_, _, _ = trigger.Label(), trigger.MetricName(i), trigger.Activation()
		}
		_, _, _ = so.Pause(), so.HPAName(), so.Target()
	})
}
