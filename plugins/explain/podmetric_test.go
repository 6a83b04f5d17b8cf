package explain

import (
	"fmt"
	"strings"
	"testing"
)

// TestPodMetricText: an HPA on CPU without KEDA, saved with its pods and without
// any time of the sync, gets its arithmetic.
func TestPodMetricText(t *testing.T) {
	const workload = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: a}
spec:
  maxReplicas: 20
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
status:
  currentReplicas: 4
  desiredReplicas: 7
  currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 80, averageValue: 80m}}}]
  conditions:
  - {type: AbleToScale, status: "True", reason: SucceededRescale}
  - {type: ScalingActive, status: "True", reason: ValidMetricFound, message: "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)"}
  - {type: ScalingLimited, status: "False", reason: DesiredWithinRange}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: a}
spec: {replicas: 4, selector: {matchLabels: {a: b}}}
status: {replicas: 4}
`
	listed := workload
	for i := range 4 {
		listed += fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: p%d, namespace: a, labels: {a: b}}
spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}
status: {phase: Running, startTime: "2026-11-30T09:00:00Z", conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-11-30T09:00:10Z"}]}
`, i)
	}
	tests := map[string]struct{ objects, want string }{
		"with its pods":    {listed, "4-7        wins   ratio 1.60; ceil(1.60 x 4) = 7 if each of 4 pods had a sample, which is not known"},
		"without its pods": {workload, "0-7        wins   ratio 1.60; ceil(1.60 x 4) = 7 if each of 4 pods had a sample; the pods of the sync and their samples are not known"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, test.objects, "-f", "-", "--kubernetes-version", "1.37")
			if err != nil || !strings.Contains(stdout, test.want) {
				t.Errorf("%v, no %q in\n%s", err, test.want, stdout)
			}
		})
	}
}
