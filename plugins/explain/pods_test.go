package explain

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const pendingPods = `---
apiVersion: v1
kind: Pod
metadata: {name: NAME-1, namespace: a, labels: {a: b}}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME-2, namespace: a, labels: {a: b}}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME-3, namespace: a, labels: {a: b}}
spec: {nodeName: gpu-1}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME-4, namespace: a, labels: {a: b}}
spec: {nodeName: gpu-1}
status: {phase: Running, conditions: [{type: Ready, status: "False", message: "containers with unready status: [engine]"}]}
`

// TestPods: pods by phase with what keeps them from being Ready, and the nodes.
func TestPods(t *testing.T) {
	yaml := strings.Replace(inNamespace("a", "4"), "readyReplicas: 4", "observedGeneration: 1", 1)
	stdout, _, err := run(t, yaml+pendingPods, "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"4 replicas (range 1-10), 1 ready",
		"pods: 1 of 4 ready, on 1 node: gpu-1 (2)",
		"  2 Pending: is not scheduled: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
		"  1 Running: containers with unready status: [engine]",
	} {
		if !strings.Contains(stdout, line+"\n") {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
	// A Deployment leaves readyReplicas away where it is 0.
	if stdout, _, _ := run(t, yaml, "-f", "-"); !strings.Contains(stdout, "4 replicas (range 1-10), 0 ready\n") || strings.Contains(stdout, "pods:") {
		t.Errorf("got\n%s", stdout)
	}
}

func TestCredentials(t *testing.T) {
	yaml := manifest(atLeast1, trigger(queue, "2", ", authenticationRef: {name: prom}"), trigger(queue, "3", ", authenticationRef: {name: prom}"),
		trigger(queue, "4", ", authenticationRef: {name: all, kind: ClusterTriggerAuthentication}"))
	stdout, _, err := run(t, yaml, "-f", "-")
	if err != nil || !strings.Contains(stdout, "credentials: TriggerAuthentication prom (s0, s1)\ncredentials: ClusterTriggerAuthentication all (s2)\n") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

func TestNodesText(t *testing.T) {
	var nodes []record.PodsOnNode
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		nodes = append(nodes, record.PodsOnNode{Node: name, Pods: 1})
	}
	if got := nodesText(nodes); got != ", on 6 nodes: a (1), b (1), c (1), d (1) and 2 more" {
		t.Error(got)
	}
	if got := nodesText(nil); got != "" {
		t.Error(got)
	}
}
