package controller_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve"
)

// The objects that KServe itself made, saved from a cluster, against those that
// are made here of the same service.
func TestAgainstKServesObjects(t *testing.T) {
	folder := filepath.Join(shared, "fixtures", "kserve")
	if _, err := os.Stat(folder); err != nil {
		t.Skip("needs objects saved from a cluster next to the checkout:", err)
	}
	type child struct {
		file     string
		resource schema.GroupVersionResource
		// parts are the dotted paths that are compared.
		parts []string
	}
	meta := []string{"metadata.name", "metadata.labels", "metadata.annotations"}
	all := append([]string{"spec"}, meta...)
	// A workload's pod lacks the certificates and the account of the real one.
	workload := append([]string{"spec.selector", "spec.replicas", "spec.strategy", "spec.template.metadata",
		"spec.template.spec.containers.0.ports", "spec.template.spec.containers.0.env", "spec.template.spec.containers.0.args",
		"spec.template.spec.containers.0.resources", "spec.template.spec.containers.0.startupProbe",
		"spec.template.spec.containers.0.readinessProbe", "spec.template.spec.containers.0.livenessProbe",
		"spec.template.spec.containers.0.securityContext", "spec.template.spec.containers.0.terminationMessagePolicy",
		"spec.template.spec.initContainers.0.command", "spec.template.spec.initContainers.0.ports",
		"spec.template.spec.initContainers.0.readinessProbe", "spec.template.spec.initContainers.0.livenessProbe"}, meta...)
	service := append([]string{"spec.ports", "spec.selector", "spec.type"}, meta...)
	tests := map[string]struct {
		file     string
		resource schema.GroupVersionResource
		children []child
		ready    []string
	}{
		"external": {"01-external-isvc-ext.yaml", inferenceServices, []child{
			{"01-external-deploy-ext-predictor.yaml", deployments, all},
			{"01-external-svc-ext-predictor.yaml", services, service},
			{"01-external-ingress-ext.yaml", ingresses, []string{"metadata.name", "metadata.labels"}},
		}, []string{"ext-predictor"}},
		"keda": {"02-keda-isvc-kd.yaml", inferenceServices, []child{
			{"02-keda-deploy-kd-predictor.yaml", deployments, all},
			{"02-keda-svc-kd-predictor.yaml", services, service},
			{"02-keda-so-kd-predictor.yaml", scaledObjects, all},
		}, nil},
		"decode and prefill": {"04-llmisvc-llminferenceservice-pd.yaml", llmServices, []child{
			{"04-llmisvc-deploy-pd-kserve.yaml", deployments, workload},
			{"04-llmisvc-deploy-pd-kserve-prefill.yaml", deployments, workload},
			{"04-llmisvc-so-pd-kserve-keda.yaml", scaledObjects, all},
			{"04-llmisvc-so-pd-kserve-prefill-keda.yaml", scaledObjects, all},
			{"04-llmisvc-svc-pd-kserve-workload-svc.yaml", services, service},
		}, nil},
	}
	eachCluster(t, func(t *testing.T, on env) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				on := on.in(t)
				on.make(t, test.resource, bare(load(t, filepath.Join(folder, test.file))))
				for _, name := range test.ready {
					on.await(t, deployments, name, exists)
					on.roll(t, name, 1, 1, 1, 1)
				}
				for _, child := range test.children {
					want := load(t, filepath.Join(folder, child.file))
					got := on.await(t, child.resource, want.GetName(), exists)
					for _, object := range []*unstructured.Unstructured{want, got} {
						forget(object)
					}
					for _, part := range child.parts {
						if diff := cmp.Diff(at(want.Object, part), at(got.Object, part)); diff != "" {
							t.Errorf("%s %s (-KServe +here):\n%s", child.file, part, diff)
						}
					}
				}
			})
		}
	})
}

func load(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kserve.Decode(content)
	if err != nil || len(objects) != 1 {
		t.Fatalf("read %s: %d objects, %v", path, len(objects), err)
	}
	return objects[0]
}

// bare returns what a user would have written of a saved object.
func bare(saved *unstructured.Unstructured) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": saved.GetAPIVersion(), "kind": saved.GetKind(), "spec": saved.Object["spec"],
		"metadata": map[string]any{"name": saved.GetName()},
	}}
	annotations := saved.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	if len(annotations) > 0 {
		object.SetAnnotations(annotations)
	}
	return object
}

// forget removes what other controllers, and the place, put into an object.
func forget(object *unstructured.Unstructured) {
	for _, fields := range [][]string{
		{"metadata", "labels", "scaledobject.keda.sh/name"},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
		{"spec", "template", "metadata", "namespace"},
	} {
		unstructured.RemoveNestedField(object.Object, fields...)
	}
	if annotations := object.GetAnnotations(); len(annotations) == 0 {
		object.SetAnnotations(nil)
	}
}

// Until its admission is ready the API server lets the old spelling through, and
// the reconciler rewrites it; a dry run shows admission alone.
func TestDeploymentModeIsRewritten(t *testing.T) {
	eachCluster(t, func(t *testing.T, on env) {
		on = on.in(t)
		err := retry(t.Context(), func() (bool, error) {
			got, err := on.of(inferenceServices).Create(t.Context(),
				isvc("x", map[string]any{"serving.kserve.io/deploymentMode": "RawDeployment"}, nil),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && got.GetAnnotations()["serving.kserve.io/deploymentMode"] != "Standard", err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
