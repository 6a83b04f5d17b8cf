package explain

import (
	"fmt"
	"strings"
	"testing"
)

// oneMetric is an HPA with one metric and no behavior, its Deployment, and,
// where annotation is given, a paused ScaledObject that disables a direction.
type oneMetric struct {
	from, desired, top             int32
	average, able, active, limited string
	now                            int32
	paused                         bool
}

func (o oneMetric) yaml() string {
	behavior, scaledObject := "", ""
	if o.paused {
		behavior = "\n  behavior: {scaleUp: {selectPolicy: Disabled}}"
		scaledObject = `
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: so, namespace: a, annotations: {autoscaling.keda.sh/paused-scale-out: "true"}}
spec:
  scaleTargetRef: {name: d}
  minReplicaCount: 1
  maxReplicaCount: 10
  triggers:
  - {type: prometheus, metadata: {serverAddress: "http://prometheus.example", query: "vector(9)", threshold: "2"}}
status: {hpaName: h, externalMetricNames: [s0-prometheus], conditions: [{type: Ready, status: "True"}]}`
	}
	slots := "[{type: External, external: {metric: {name: s0-prometheus}, current: {averageValue: \"" + o.average + "\"}}}]"
	if o.average == "" {
		slots = "[{type: \"\"}]"
	}
	on := "True"
	if o.active != "ValidMetricFound" {
		on = "False"
	}
	limited := ""
	if o.limited != "" {
		limited = fmt.Sprintf("\n  - {type: ScalingLimited, status: \"True\", reason: %s, lastTransitionTime: \"2026-11-30T11:00:00Z\"}", o.limited)
	}
	return fmt.Sprintf(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: a}
spec:
  minReplicas: 1
  maxReplicas: %d
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}%s
  metrics:
  - {type: External, external: {metric: {name: s0-prometheus}, target: {type: AverageValue, averageValue: "2"}}}
status:
  currentReplicas: %d
  desiredReplicas: %d
  lastScaleTime: "2026-11-30T12:00:00Z"
  currentMetrics: %s
  conditions:
  - {type: AbleToScale, status: "True", reason: %s, lastTransitionTime: "2026-11-30T11:00:00Z"}
  - {type: ScalingActive, status: "%s", reason: %s, message: "the HPA was able to successfully calculate a replica count from external metric s0-prometheus(nil)", lastTransitionTime: "2026-11-30T11:00:00Z"}%s
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: a}
spec: {replicas: %d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}
status: {replicas: %d}%s
`, o.top, behavior, o.from, o.desired, slots, o.able, on, o.active, limited, max(o.from, o.desired), o.now, scaledObject)
}

// TestProvenTexts: what the controller's conditions prove is said, and nothing
// that they exclude.
func TestProvenTexts(t *testing.T) {
	const none = "-9223372036854775808m"
	tests := map[string]struct {
		hpa       oneMetric
		args      []string
		want, not []string
	}{
		"no pod may start": {hpa: oneMetric{from: 5, desired: 5, top: 10, average: none, able: "ReadyForNewScale", active: "ValidMetricFound", limited: "DesiredWithinRange"},
			want: []string{"s0-prometheus   -       2 per replica   5          wins", "DECISION stay at 5", "status.replicas was 0", "agrees"}, not: []string{"0.00"}},
		"just activated": {hpa: oneMetric{from: 1, desired: 4, top: 10, average: none, able: "SucceededRescale", active: "ValidMetricFound", limited: "ScaleUpLimit", now: 4},
			want: []string{"DECISION 1 -> 4\n", "lead to 5 or more", "doubling, or 4 allows 4"}, not: []string{"0.00"}},
		"no replicas, another size": {hpa: oneMetric{from: 5, desired: 5, top: 10, average: none, able: "ReadyForNewScale", active: "ValidMetricFound", limited: "DesiredWithinRange"},
			args: []string{"--set", "replicas=3"}, want: []string{"unknown   unknown"}},
		"raised by the window": {hpa: oneMetric{from: 4, desired: 5, top: 10, average: "400m", able: "SucceededRescale", active: "ValidMetricFound", limited: "DesiredWithinRange", now: 4},
			want: []string{"DECISION 4 -> 5: a proposal of the window's; now the metrics ask for 1", "scale-down window 300s: its highest proposal is 5, until 12:05:00Z at the latest"}},
		"never computed": {hpa: oneMetric{from: 1, desired: 0, top: 10, able: "SucceededGetScale", active: "FailedGetExternalMetric", now: 1},
			args: []string{"--set", "max=9"}, want: []string{"next sync          1 (held: a metric failed)   1 (held: a metric failed)"}},
		"more than the maximum": {hpa: oneMetric{from: 9, desired: 9, top: 9, average: "5", able: "ReadyForNewScale", active: "ValidMetricFound", limited: "TooManyReplicas", now: 5},
			want: []string{"DECISION stay at 9: the metrics ask for 13-23, the maximum is 9"}, not: []string{"waiting", "allows 9"}},
		"paused-scale-out": {hpa: oneMetric{from: 1, desired: 1, top: 10, average: "9", able: "ReadyForNewScale", active: "ValidMetricFound", limited: "ScaleUpLimit", now: 1, paused: true},
			want: []string{"DECISION stay at 1: scaling out is paused (paused-scale-out), and the metrics ask for 5"}, not: []string{"waiting", "disabled allows"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, test.hpa.yaml(), append([]string{"-f", "-", "--kubernetes-version", "1.37"}, test.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range test.want {
				if !strings.Contains(stdout, text) {
					t.Errorf("no %q in\n%s", text, stdout)
				}
			}
			for _, text := range test.not {
				if strings.Contains(stdout, text) {
					t.Errorf("%q in\n%s", text, stdout)
				}
			}
		})
	}
}
