package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// TestRecord: a recording is explained elsewhere as it was here.
func TestRecord(t *testing.T) {
	w := newWorld(t, "record", apiserver.Admin)
	w.addAll(t, []service{steady("fine", 1), steady("neighbour", 0)})
	dir := filepath.Join(t.TempDir(), "ticket")
	here := w.explain(t, "so/fine", "--record", dir)
	there := document(t, "-f", dir)
	if there.Target != "so/fine" || there.KubernetesVersion != here.KubernetesVersion || there.AsOf.Time == nil {
		t.Errorf("got %+v", there)
	}
	if diff := cmp.Diff(here.Chains, there.Chains); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(filepath.Join(dir, objectsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"neighbour", "example.test/none"} {
		if strings.Contains(string(data), text) {
			t.Errorf("%s is in the recording", text)
		}
	}
	if _, _, err := w.run(t, "so/fine", "--record", "testdata"); failure.KindOf(err) != failure.Usage || !strings.Contains(err.Error(), "other files") {
		t.Errorf("got %v", err)
	}
}

// TestWithoutSecrets: nothing that may be a credential is kept.
func TestWithoutSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"trigger": `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: a, annotations: {autoscaling.keda.sh/paused: "true", kubectl.kubernetes.io/last-applied-configuration: not-to-be-kept}}
spec: {triggers: [{type: prometheus, metadata: {threshold: "2", serverAddress: "http://u:not-to-be-kept@p:9090/x", customHeaders: A=not-to-be-kept, queryParameters: t=not-to-be-kept, apiToken: not-to-be-kept}}]}`,
		"pod": `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: main, args: [not-to-be-kept], env: [{name: A, value: not-to-be-kept}], resources: {requests: {cpu: "1"}}}], volumes: [{name: not-to-be-kept}]}`,
		"workload": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {replicas: 2, template: {spec: {containers: [{name: not-to-be-kept}]}}}`,
	} {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		data, err := yaml.Marshal(withoutSecrets(&object).Object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "not-to-be-kept") {
			t.Errorf("%s:\n%s", name, data)
		}
		for _, kept := range map[string][]string{"trigger": {"threshold: \"2\"", "p:9090/x", "paused"}, "pod": {"cpu: \"1\"", "name: main"}, "workload": {"replicas: 2"}}[name] {
			if !strings.Contains(string(data), kept) {
				t.Errorf("%s: %s is missing in\n%s", name, kept, data)
			}
		}
	}
}
