package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// kedaObjects are a ScaledObject, its HPA and its workload, with parts filled
// in: annotations, fields of the spec, of the status, and the size.
func kedaObjects(annotations, spec, status string, size int) string {
	return fmt.Sprintf(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: keda-hpa-chat
  namespace: models
  labels: {app.kubernetes.io/managed-by: keda-operator, app.kubernetes.io/version: 2.21.0}
  ownerReferences:
  - {apiVersion: keda.sh/v1alpha1, kind: ScaledObject, name: chat, uid: so-1, controller: true}
spec:
  minReplicas: 1
  maxReplicas: 10
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  metrics:
  - {type: External, external: {metric: {name: s0-prometheus}, target: {type: AverageValue, averageValue: "2"}}}
status:
  currentReplicas: %[4]d
  desiredReplicas: %[4]d
  lastScaleTime: "2026-03-01T12:00:00Z"
  currentMetrics:
  - {type: External, external: {metric: {name: s0-prometheus}, current: {averageValue: "2"}}}
  conditions:
  - {type: AbleToScale, status: "True", reason: ReadyForNewScale}
  - {type: ScalingActive, status: "True", reason: ValidMetricFound}
  - {type: ScalingLimited, status: "False", reason: DesiredWithinRange}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: chat, namespace: models, uid: so-1, creationTimestamp: "2026-02-01T00:00:00Z", annotations: {%[1]s}}
spec:
  maxReplicaCount: 10
  scaleTargetRef: {name: chat}
  triggers:
  - {type: prometheus, name: waiting, metadata: {threshold: "2", activationThreshold: "1", query: "sum(vllm:num_requests_waiting)"}}
  %[2]s
status: {externalMetricNames: [s0-prometheus], %[3]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: models}
spec: {replicas: %[4]d, selector: {matchLabels: {app: chat}}}
status: {replicas: %[4]d, readyReplicas: %[4]d}
`, annotations, spec, status, size)
}

const (
	inactive = `conditions: [{type: Ready, status: "True", reason: ScaledObjectReady}, {type: Active, status: "False", reason: ScalerNotActive}]`
	active   = `conditions: [{type: Ready, status: "True", reason: ScaledObjectReady}, {type: Active, status: "True", reason: ScalerActive}]`
	failing  = `conditions: [{type: Ready, status: "False", reason: TriggerError}, {type: Active, status: "False", reason: ScalerNotActive}]`
)

// TestKEDABlock: the block appears where KEDA's own loop matters, and says what
// it does next.
func TestKEDABlock(t *testing.T) {
	tests := map[string]struct {
		annotations, spec, status string
		size                      int
		want                      []string
	}{
		"active at a size: the HPA's business": {"", "", active, 3, nil},
		"cooldown runs": {"", "", inactive + `, lastActiveTime: "2026-03-01T12:00:00Z"`, 1,
			[]string{"cooldown       inactive: 1 -> 0 after 12:05:00Z (cooldownPeriod 300s)"}},
		"cooldown over": {"", "cooldownPeriod: 30", inactive + `, lastActiveTime: "2026-03-01T11:59:00Z"`, 1,
			[]string{"cooldown       over: 1 -> 0 at its next turn, within 30s"}},
		"initial cooldown": {"", "initialCooldownPeriod: 31622400", inactive, 1,
			[]string{"cooldown       inactive: 1 -> 0 after 2027-02-02T00:00:00Z (initialCooldownPeriod 31622400s)"}},
		"keda#804 #737: no cooldown to the minimum": {"", "minReplicaCount: 1", inactive + `, lastActiveTime: "2026-03-01T11:59:50Z"`, 3, nil},
		"keda#8172 #2619: idle 1 below minimum 2": {"", "minReplicaCount: 2\n  idleReplicaCount: 1", inactive, 2,
			[]string{"cooldown       over: 2 -> 1 at its next turn, within 30s"}},
		"idle": {"", "minReplicaCount: 2\n  idleReplicaCount: 0", inactive, 0,
			[]string{"activation     to 2 once s0 waiting is above 1, looked at every 30s"}},
		"active at zero": {"", "", active, 0,
			[]string{"activation     active: 0 -> 1 at its next turn, within 30s"}},
		"scale out paused": {"autoscaling.keda.sh/paused-scale-out: \"true\"", "", active, 0,
			[]string{
				"pause          paused-scale-out: metrics add no replica, a higher minimum still does",
				"activation     active, and paused-scale-out keeps the size",
			}},
		"scale in paused": {"autoscaling.keda.sh/paused-scale-in: \"true\"", "", inactive, 1,
			[]string{
				"pause          paused-scale-in: metrics remove no replica, a lower maximum still does",
				"cooldown       inactive, and paused-scale-in keeps the size",
			}},
		"forced": {"autoscaling.keda.sh/force-activation: \"true\"", "", active, 1,
			[]string{"activation     forced by the annotation: never to zero"}},
		"keda#6887: a trigger fails without fallback": {"", "minReplicaCount: 1", failing, 1,
			[]string{"failure        a trigger fails and none is active: KEDA's loop leaves the size"}},
		"fallback counts": {"", "fallback: {failureThreshold: 3, replicas: 6}", active + ", health: {s0-prometheus: {numberOfFailures: 3, status: Failing}}", 2,
			[]string{"fallback       s0 waiting failed 3 of the 4 times after which it asks for 6"}},
		"fallback active": {"", "fallback: {failureThreshold: 3, replicas: 6, behavior: currentReplicasIfHigher}", active + ", health: {s0-prometheus: {numberOfFailures: 4, status: Failing}}", 8,
			[]string{"fallback       active: s0 waiting failed 4 times in a row; it asks for 8 (currentReplicasIfHigher)"}},
		"fallback skips the formula": {"", "fallback: {failureThreshold: 0, replicas: 6}\n  advanced: {scalingModifiers: {formula: waiting, target: \"1\"}}", active + ", health: {s0-prometheus: {numberOfFailures: 1, status: Failing}}", 2,
			[]string{
				"fallback       the formula is skipped while a trigger is in fallback",
				"fallback       active: s0 waiting failed 1 times in a row; it asks for 6 (static)",
				"modifiers      waiting, target 1 (AverageValue), active above 0",
			}},
		"fallback left to the formula": {"", "fallback: {failureThreshold: 1, replicas: 6, behavior: scalingModifiers}\n  advanced: {scalingModifiers: {formula: \"waiting ?? 3\", target: \"1\"}}", active + ", health: {s0-prometheus: {numberOfFailures: 1, status: Failing}}", 2,
			[]string{
				"fallback       s0 waiting failed 1 of the 2 times after which it leaves it to the formula",
				"modifiers      waiting ?? 3, target 1 (AverageValue), active above 0",
			}},
		"fallback silently off": {"", "fallback: {failureThreshold: 3, replicas: 6}\n  advanced: {scalingModifiers: {formula: waiting * 2, target: \"0.5\"}}", active, 2,
			[]string{
				"fallback       off: with scalingModifiers their target must be a whole number",
				"modifiers      waiting * 2, target 0.5 (AverageValue), active above 0",
			}},
		"formula refused": {"", "advanced: {scalingModifiers: {formula: nobody + 1, target: \"2\"}}", active, 2,
			[]string{
				"modifiers      nobody + 1, target 2 (AverageValue), active above 0",
				"modifiers      refused: compile formula: unknown name nobody (1:7) | float(nobody + 1) | ......^",
			}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run(t, kedaObjects(test.annotations, test.spec, test.status, test.size), "-f", "-")
			if err != nil || stderr != "" {
				t.Fatalf("%v %s", err, stderr)
			}
			if diff := cmp.Diff(test.want, block(stdout, "KEDA")); diff != "" {
				t.Errorf("%s\n%s", diff, stdout)
			}
		})
	}
}

// block returns the indented lines under a heading.
func block(text, heading string) []string {
	_, rest, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		return nil
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// TestKEDADocument: the document has both ways that the next turn can go.
func TestKEDADocument(t *testing.T) {
	objects := kedaObjects("", "minReplicaCount: 0", inactive+`, lastActiveTime: "2026-03-01T12:00:00Z", triggersActivity: {s0-prometheus: {isActive: false}}`, 1)
	stdout, _, err := run(t, objects, "-f", "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var document record.ScalingExplanation
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatal(err)
	}
	k := document.Chains[0].KEDA
	if k == nil || k.Version != "2.21.0" || k.VersionAssumed || k.Active == nil || *k.Active || k.Source != "own_query" {
		t.Fatalf("got %+v", k)
	}
	if k.WhenActive.Reason != "active" || k.WhenInactive.Reason != "cools_down" || k.Next.NotBefore == nil {
		t.Errorf("got %+v %+v %+v", k.WhenActive, k.WhenInactive, k.Next)
	}
	if len(k.Activations) != 1 || k.Activations[0].Threshold != 1 || *k.Activations[0].Active {
		t.Errorf("got %+v", k.Activations)
	}
}
