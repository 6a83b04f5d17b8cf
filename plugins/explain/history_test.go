package explain

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// TestHistory: the last hour in order, with who did it; a rescale's old size
// comes from the ReplicaSet that followed, and older events are left out.
func TestHistory(t *testing.T) {
	stdout, _, err := run(t, "", "-f", "testdata/waiting.yaml", "-f", "testdata/history-events.yaml", "--history")
	if err != nil {
		t.Fatal(err)
	}
	_, history, found := strings.Cut(stdout, "HISTORY")
	history, _, _ = strings.Cut(history, "\n\n")
	if !found {
		t.Fatalf("got\n%s", stdout)
	}
	golden.Compare(t, "history.golden", history+"\n")
}

func TestHistoryOfACluster(t *testing.T) {
	w := newWorld(t, "history", apiserver.Admin)
	w.addAll(t, []service{steady("fine", 0)})
	w.server.Kubectl(t, `apiVersion: v1
kind: Event
metadata: {name: scaled}
involvedObject: {kind: Deployment, name: fine, apiVersion: apps/v1, namespace: history}
reason: ScalingReplicaSet
type: Normal
message: Scaled up replica set fine-6d4cf56db6 from 1 to 2
`, "create", "-n", "history", "-f", "-")
	chain := w.explain(t, "so/fine", "--history").Chains[0]
	if chain.History == nil || len(*chain.History) == 0 {
		t.Fatalf("got %+v", chain.History)
	}
	var told []string
	for _, e := range *chain.History {
		told = append(told, e.Kind+" "+stepText(e))
	}
	if got := strings.Join(told, ","); !strings.Contains(got, "replicaset 1 -> 2") {
		t.Errorf("got %s", got)
	}
	if requests := w.seen(); len(requests) > 12 {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
}

func TestActor(t *testing.T) {
	for manager, want := range map[string]string{
		"kube-controller-manager": "the HPA", "keda": "KEDA", "argocd-controller": "Argo CD", "helm": "Helm",
		"kustomize-controller": "Flux", "kubectl-scale": "kubectl-scale", "someone": "someone",
	} {
		if got := actor(manager); got != want {
			t.Errorf("%s: got %q", manager, got)
		}
	}
}
