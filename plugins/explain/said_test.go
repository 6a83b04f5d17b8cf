package explain

import (
	"fmt"
	"strings"
	"testing"
)

// saved is an HPA h of the Deployment d and, where given, a ScaledObject so, from
// "}" or the annotations on to before its triggers. A negative size is none.
type saved struct {
	spec, status, conditions string
	size                     int
	scaledObject             string
	noStatus                 bool
}

const (
	metricM   = `{type: External, external: {metric: {name: s0-prometheus}, target: {type: AverageValue, averageValue: "5"}}}`
	metricN   = `{type: External, external: {metric: {name: s1-prometheus}, target: {type: AverageValue, averageValue: "5"}}}`
	valueM    = `{type: External, external: {metric: {name: s0-prometheus}, current: {%s: "%s"}}}`
	valueN    = `{type: External, external: {metric: {name: s1-prometheus}, current: {averageValue: "%s"}}}`
	readyNow  = `{type: AbleToScale, status: "True", reason: ReadyForNewScale}, {type: ScalingActive, status: "True", reason: ValidMetricFound}, {type: ScalingLimited, status: "False", reason: DesiredWithinRange}`
	rescaled  = `{type: AbleToScale, status: "True", reason: SucceededRescale}, {type: ScalingActive, status: "True", reason: ValidMetricFound}, {type: ScalingLimited, status: "False", reason: DesiredWithinRange}`
	heldDown  = `{type: AbleToScale, status: "True", reason: ScaleDownStabilized}, {type: ScalingActive, status: "True", reason: ValidMetricFound}, {type: ScalingLimited, status: "False", reason: DesiredWithinRange}`
	scaleGone = `{type: AbleToScale, status: "False", reason: FailedGetScale}, {type: ScalingActive, status: "True", reason: ValidMetricFound}, {type: ScalingLimited, status: "False", reason: DesiredWithinRange}`
)

func (s saved) yaml() string {
	status := fmt.Sprintf("status: {%s, conditions: [%s]}", s.status, s.conditions)
	if s.noStatus {
		status = ""
	}
	text := fmt.Sprintf(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: a}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, %s}
%s
`, s.spec, status)
	if s.size >= 0 {
		text += fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: a}
spec: {replicas: %[1]d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}
status: {replicas: %[1]d, readyReplicas: %[1]d}
`, s.size)
	}
	if s.scaledObject != "" {
		text += fmt.Sprintf(`---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: so, namespace: a%s
  triggers:
  - {type: prometheus, metadata: {serverAddress: "http://prometheus.example", query: "sum(q)", threshold: "5"}}
status: {hpaName: h, externalMetricNames: [s0-prometheus], conditions: [{type: Ready, status: "True"}]}
`, s.scaledObject)
	}
	return text
}

// TestSaid holds what a reviewer's files were told wrongly.
func TestSaid(t *testing.T) {
	seen := func(value string) string { return fmt.Sprintf(valueM, "averageValue", value) }
	tests := map[string]struct {
		saved     saved
		args      []string
		want, not []string
	}{
		"an HPA with the minimum 0": {saved: saved{spec: "minReplicas: 0, maxReplicas: 10, metrics: [" + metricM + "]", size: 5, conditions: rescaled,
			status: "currentReplicas: 5, desiredReplicas: 0, currentMetrics: [" + seen("0") + "]"}, args: []string{"--set", "max=9"},
			want: []string{"DECISION 5 -> 0\n", "in the end         0 at the next sync"}, not: []string{"the minimum is"}},
		"a ScaledObject that KEDA has not followed": {saved: saved{spec: "minReplicas: 1, maxReplicas: 20, metrics: [" + metricM + "]", size: 15, conditions: strings.Replace(rescaled, `"False", reason: DesiredWithinRange`, `"True", reason: TooManyReplicas`, 1),
			status: "currentReplicas: 15, desiredReplicas: 20, currentMetrics: [" + seen("20") + "]", scaledObject: "}\nspec:\n  scaleTargetRef: {name: d}\n  minReplicaCount: 2\n  maxReplicaCount: 30"},
			want: []string{"(range 1-20 by the HPA, 2-30 by the ScaledObject)", "DECISION 15 -> 20: the metrics ask for 60, the maximum is 20"}},
		"a ScaledObject from 0": {saved: saved{spec: "minReplicas: 1, maxReplicas: 20, metrics: [" + metricM + "]", size: 2, conditions: rescaled,
			status: "currentReplicas: 2, desiredReplicas: 1, currentMetrics: [" + seen("0") + "]", scaledObject: "}\nspec:\n  scaleTargetRef: {name: d}\n  minReplicaCount: 0\n  maxReplicaCount: 20"},
			want: []string{"(range 0-20)", "DECISION 2 -> 1: the metrics ask for 0, the minimum is 1"}},
		"scaleDown disabled": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, behavior: {scaleDown: {selectPolicy: Disabled}}, metrics: [" + metricM + "]", size: 6, conditions: readyNow,
			status: "currentReplicas: 6, desiredReplicas: 6, currentMetrics: [" + seen("5") + "]"},
			want: []string{"acts above 33, never removes: scaleDown is disabled"}, not: []string{"removes from"}},
		"scaleUp disabled": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, behavior: {scaleUp: {selectPolicy: Disabled}}, metrics: [" + metricM + "]", size: 6, conditions: readyNow,
			status: "currentReplicas: 6, desiredReplicas: 6, currentMetrics: [" + seen("5") + "]"},
			want: []string{"never adds: scaleUp is disabled, removes from 25 down"}, not: []string{"acts above"}},
		"another one holds": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, metrics: [" + metricM + ", " + metricN + "]", size: 5, conditions: readyNow,
			status: "currentReplicas: 5, desiredReplicas: 5, currentMetrics: [" + seen("5") + ", " + fmt.Sprintf(valueN, "4800m") + "]"},
			want: []string{"removes from 20 down if the others do"}},
		"another one failed": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, metrics: [" + metricM + ", " + metricN + "]", size: 5, conditions: rescaled,
			status: "currentReplicas: 5, desiredReplicas: 7, currentMetrics: [" + seen("6500m") + `, {type: ""}]`},
			want: []string{"removes none while another fails"}, not: []string{"removes from"}},
		"the scale cannot be read": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, metrics: [" + metricM + "]", size: 2, conditions: scaleGone,
			status: "currentReplicas: 2, desiredReplicas: 2, currentMetrics: [" + seen("10") + "]"}, args: []string{"--set", "max=9"},
			want: []string{"DECISION held at 2", "FailedGetScale", "of an earlier sync", "2 (held: FailedGetScale)"}, not: []string{"2 -> 4", "wins"}},
		"no time after the rescale": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, metrics: [" + metricM + "]", size: 6, conditions: heldDown,
			status: `lastScaleTime: "2026-11-30T09:00:00Z", currentReplicas: 6, desiredReplicas: 6, currentMetrics: [` + seen("1") + "]"},
			want: []string{"last changed at 2026-11-30T09:00:00Z"}, not: []string{"0s ago", "at the latest"}},
		"no status and no workload": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, metrics: [" + metricM + "]", size: -1, noStatus: true},
			want: []string{"size unknown (range 1-10)"}, not: []string{"0 replicas"}},
		"paused at another size": {saved: saved{spec: "maxReplicas: 9", size: 3, noStatus: true, scaledObject: ", annotations: {autoscaling.keda.sh/paused-replicas: \"0\"}}\nspec:\n  scaleTargetRef: {name: d}\n  minReplicaCount: 0\n  maxReplicaCount: 20"},
			want: []string{"sets the size to 0, where it stays"}, not: []string{"held at 0"}},
		"the divisor is what it asks for": {saved: saved{spec: "minReplicas: 1, maxReplicas: 100, metrics: [" + metricM + "]", size: 5, conditions: rescaled,
			status: "currentReplicas: 6, desiredReplicas: 5, currentMetrics: [" + seen("5") + "]"},
			args: []string{"--set", "max=99"}, want: []string{"s0-prometheus   25.0    5 per replica   5", "acts above 30", "25.0 of 5 per replica"}, not: []string{"~"}},
		"digits that round up": {saved: saved{spec: "minReplicas: 1, maxReplicas: 10, behavior: {scaleDown: {tolerance: \"500m\"}, scaleUp: {tolerance: \"0\"}}, metrics: [" + metricM + "]", size: 6, conditions: rescaled,
			status: "currentReplicas: 6, desiredReplicas: 7, currentMetrics: [" + seen("5001m") + "]"},
			want: []string{"ceil(30.006 / 5)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, test.saved.yaml(), append([]string{"-f", "-", "--kubernetes-version", "1.37"}, test.args...)...)
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
