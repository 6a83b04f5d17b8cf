package plan

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// object reads YAML as the API client does: numbers are int64 or float64.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func copyOf(t testing.TB, value map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var copied map[string]any
	if err := json.Unmarshal(data, &copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

func parsed(t testing.TB, value map[string]any) keda.ScaledObject {
	t.Helper()
	so, err := keda.Parse(value)
	if err != nil {
		t.Fatal(err)
	}
	return so
}

func number(value float64) *float64 { return &value }

// scaledObjectText has one trigger of each sort: two that the envelope speaks
// about, the seed's latency, and one of another type.
const scaledObjectText = `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: r1, namespace: models}
spec:
  scaleTargetRef: {name: r1-predictor}
  triggers:
  - type: prometheus
    metadata: {threshold: "2", query: 'sum(vllm:num_requests_waiting)', serverAddress: "http://prometheus:9090"}
  - type: prometheus
    name: slow
    metricType: AverageValue
    metadata: {threshold: "30", query: 'histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))'}
  - type: prometheus
    metadata: {threshold: "30", query: 'histogram_quantile(0.99, sum by (le) (rate(vllm:request_inference_time_seconds_bucket[5m])))'}
  - type: cpu
    metricType: Utilization
    metadata: {value: "80"}
`

// envelope advises on waiting and on the latency.
func envelope() record.CapacityEnvelope {
	evidence := []record.Evidence{{Run: "run-1", Case: "c20", Concurrency: 20}}
	return record.CapacityEnvelope{
		Model: "org/model", Tolerance: 0.1, Runs: []record.EnvelopeRun{{Run: "run-1"}, {Run: "run-2"}},
		Shapes: []record.ShapeEnvelope{{
			PromptTokens: 1024, OutputTokens: 128,
			Thresholds: []record.Threshold{
				{Trigger: record.TriggerWaiting, MetricType: record.MetricTypeAverageValue, Threshold: number(1.23456), How: "between 20 and 40", Evidence: evidence},
				{Trigger: record.TriggerP99E2E, MetricType: record.MetricTypeValue, Threshold: number(12.04), How: "at the planned load", Evidence: evidence},
			},
		}},
	}
}
