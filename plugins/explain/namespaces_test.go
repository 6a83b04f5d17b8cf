package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const twin = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: h, namespace: NS}
spec:
  maxReplicas: 10
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}
  metrics: [{type: External, external: {metric: {name: m}, target: {type: AverageValue, averageValue: "2"}}}]
status:
  currentReplicas: SIZE
  desiredReplicas: SIZE
  currentMetrics: [{type: External, external: {metric: {name: m}, current: {averageValue: "2"}}}]
  conditions:
  - {type: AbleToScale, status: "True", reason: ReadyForNewScale}
  - {type: ScalingActive, status: "True", reason: ValidMetricFound}
  - {type: ScalingLimited, status: "False", reason: DesiredWithinRange}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: NS}
spec: {replicas: SIZE, selector: {matchLabels: {a: b}}}
status: {replicas: SIZE, readyReplicas: SIZE}
---
`

func inNamespace(namespace, size string) string {
	return strings.NewReplacer("NS", namespace, "SIZE", size).Replace(twin)
}

// TestSeveralNamespaces: saved objects of two namespaces with equal names are
// kept apart in any order, and told apart.
func TestSeveralNamespaces(t *testing.T) {
	a, b := inNamespace("a", "3"), inNamespace("b", "6")
	tests := map[string]struct {
		yaml string
		args []string
		want string
	}{
		"both":       {a + b, nil, "a 3, b 6"},
		"reversed":   {b + a, nil, "a 3, b 6"},
		"by name":    {b + a, []string{"hpa/h"}, "a 3, b 6"},
		"one of two": {a + b, []string{"-n", "b"}, "b 6"},
		"its hpa":    {a + b, []string{"-n", "a", "hpa/h"}, "a 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := runWithKubeFlags(t, test.yaml, append(test.args, "-f", "-", "-o", "json")...)
			if err != nil {
				t.Fatal(err)
			}
			var document record.ScalingExplanation
			if err := json.Unmarshal([]byte(stdout), &document); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range document.Chains {
				got = append(got, c.Namespace+" "+countText(c.Replicas.Spec))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	stdout, _, _ := run(t, a+b, "-f", "-")
	if !strings.Contains(stdout, "a: HPA h > Deployment d\n3 replicas") || !strings.Contains(stdout, "b: HPA h > Deployment d\n6 replicas") {
		t.Errorf("got\n%s", stdout)
	}
	if stdout, _, _ := run(t, a, "-f", "-"); strings.Contains(stdout, "a: HPA") {
		t.Errorf("got\n%s", stdout)
	}
	_, _, err := runWithKubeFlags(t, a+b, "-n", "c", "-f", "-")
	if failure.KindOf(err) != failure.NotFound || !strings.Contains(failure.HintOf(err), "a, b") {
		t.Errorf("got %v (%s)", err, failure.HintOf(err))
	}
}

// TestTypesOfSavedTargets: a scale target of any kind is found by its type.
func TestTypesOfSavedTargets(t *testing.T) {
	yaml := strings.ReplaceAll(strings.ReplaceAll(inNamespace("a", "3"), "apps/v1", "leaderworkerset.x-k8s.io/v1"), "kind: Deployment", "kind: LeaderWorkerSet")
	for _, target := range []string{"lws/d", "leaderworkerset/d", "leaderworkersets.leaderworkerset.x-k8s.io/d", "d"} {
		if stdout, _, err := run(t, yaml, target, "-f", "-"); err != nil || !strings.Contains(stdout, "LeaderWorkerSet d") {
			t.Errorf("%s: %v\n%s", target, err, stdout)
		}
	}
	if _, _, err := run(t, yaml, "sts/d", "-f", "-"); failure.KindOf(err) != failure.NotFound {
		t.Errorf("got %v", err)
	}
}
