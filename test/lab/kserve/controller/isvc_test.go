package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestInferenceService(t *testing.T) {
	scenarios := map[string]func(t *testing.T, on env){
		"external has a Deployment, a Service and no scaler": testExternal,
		"Ready while a rollout hangs":                        testReadyWhileStuck,
		"keda gets a ScaledObject":                           testKEDAObject,
		"an edit of the ScaledObject is overwritten":         testKEDARevert,
		"a pause lasts until the next change of the spec":    testKEDAPause,
		"a lost conflict shows as not Ready for a moment":    testConflictFlap,
		"hpa to external deletes the HPA":                    testClassChange,
		"an annotation reaches the pod template":             testAnnotationRestarts,
		"only none owns the replicas":                        testReplicas,
		"stop removes the workload":                          testStop,
		"a model without an image has no runtime":            testNoRuntime,
		"deletion waits for the finalizer alone":             testDeletion,
	}
	eachCluster(t, func(t *testing.T, on env) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) { scenario(t, on.in(t)) })
		}
	})
}

func testExternal(t *testing.T, on env) {
	made := on.make(t, inferenceServices, isvc("ext", map[string]any{
		"serving.kserve.io/deploymentMode":  "RawDeployment",
		"serving.kserve.io/autoscalerClass": "external",
	}, nil))
	// By admission, or by the reconciler where admission is not ready for it.
	on.await(t, inferenceServices, "ext", func(object *unstructured.Unstructured) string {
		return cmp.Diff("Standard", object.GetAnnotations()["serving.kserve.io/deploymentMode"])
	})
	deployment := on.await(t, deployments, "ext-predictor", exists)
	wantLabels := map[string]string{
		"app": "isvc.ext-predictor", "component": "predictor", "serving.kserve.io/inferenceservice": "ext",
	}
	if diff := cmp.Diff(wantLabels, deployment.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantSelector := map[string]any{"matchLabels": map[string]any{"app": "isvc.ext-predictor"}}
	if diff := cmp.Diff(any(wantSelector), at(deployment.Object, "spec.selector")); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	owner := metav1.GetControllerOf(deployment)
	if owner == nil || owner.UID != made.GetUID() || owner.APIVersion != "serving.kserve.io/v1beta1" {
		t.Errorf("controller %v, want the InferenceService", owner)
	}
	service := on.await(t, services, "ext-predictor", exists)
	if port, target := at(service.Object, "spec.ports.0.port"), at(service.Object, "spec.ports.0.targetPort"); port != int64(80) || target != int64(8000) {
		t.Errorf("port %v to %v, want 80 to 8000", port, target)
	}
	on.roll(t, "ext-predictor", 1, 1, 1, 1)
	live := on.await(t, inferenceServices, "ext", condition("Ready", "True", ""))
	if got := at(live.Object, "status.address.url"); got != fmt.Sprintf("http://ext-predictor.%s.svc.cluster.local", on.namespace) {
		t.Errorf("address %v", got)
	}
	if got := conditionOf(live, "PredictorReady")["reason"]; got != "NewReplicaSetAvailable" {
		t.Errorf("PredictorReady reason %v, want NewReplicaSetAvailable", got)
	}
	if stopped := conditionOf(live, "Stopped"); stopped["status"] != "False" || stopped["severity"] != "Info" {
		t.Errorf("Stopped %v, want False, severity Info", stopped)
	}
	on.await(t, ingresses, "ext", exists)
	for _, none := range []*unstructured.Unstructured{on.get(t, autoscalers, "ext-predictor"), on.get(t, scaledObjects, "ext-predictor")} {
		if none != nil {
			t.Errorf("class external has a %s", none.GetKind())
		}
	}
}

// The status of a service says nothing about a rollout, and its observed
// generation is another object's.
func testReadyWhileStuck(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("ext", class("external"), nil))
	on.await(t, deployments, "ext-predictor", exists)
	on.roll(t, "ext-predictor", 1, 2, 2, 2)
	on.await(t, inferenceServices, "ext", condition("Ready", "True", ""))
	parent := on.patch(t, inferenceServices, "ext",
		`{"spec":{"predictor":{"containers":[{"name":"kserve-container","image":"lab.test/none:1"}]}}}`)
	deployment := on.await(t, deployments, "ext-predictor", field("spec.template.spec.containers.0.image", "lab.test/none:1"))
	on.roll(t, "ext-predictor", 6, 3, 1, 2)
	live := on.await(t, inferenceServices, "ext", condition("PredictorReady", "True", "MinimumReplicas"))
	if got := conditionOf(live, "Ready")["status"]; got != "True" {
		t.Errorf("Ready %v while the rollout hangs, want True", got)
	}
	if got := at(live.Object, "status.modelStatus.transitionStatus"); got != "UpToDate" {
		t.Errorf("transition status %v, want UpToDate", got)
	}
	if got := at(live.Object, "status.observedGeneration"); got != int64(6) || parent.GetGeneration() == 6 {
		t.Errorf("observed generation %v of generation %d (Deployment %d), want the Deployment's observed 6",
			got, parent.GetGeneration(), deployment.GetGeneration())
	}
}

func testKEDAObject(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("kd", class("keda"), external("2")))
	scaled := on.await(t, scaledObjects, "kd-predictor", exists)
	want := map[string]any{
		"scaleTargetRef":  map[string]any{"name": "kd-predictor"},
		"minReplicaCount": int64(1),
		"maxReplicaCount": int64(4),
		"advanced": map[string]any{
			"scalingModifiers": map[string]any{},
			"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{
				"scaleUp":   map[string]any{"stabilizationWindowSeconds": int64(60)},
				"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(240)},
			}},
		},
		"triggers": []any{map[string]any{"type": "prometheus", "metadata": map[string]any{
			"serverAddress": "http://127.0.0.1:9090", "query": "sum(waiting)", "threshold": "2",
		}}},
	}
	if diff := cmp.Diff(any(want), scaled.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	on.patchJSON(t, inferenceServices, "kd",
		`[{"op":"replace","path":"/spec/predictor/autoScaling/metrics/0/external/target/value","value":"3"}]`)
	on.await(t, scaledObjects, "kd-predictor", field("spec.triggers.0.metadata.threshold", "3"))
}

// playKEDA does to a ScaledObject what KEDA does when it first sees one.
func (e env) playKEDA(t *testing.T, name string) {
	t.Helper()
	e.patch(t, scaledObjects, name, fmt.Sprintf(
		`{"metadata":{"finalizers":["finalizer.keda.sh"],"labels":{"scaledobject.keda.sh/name":%q}}}`, name))
	t.Cleanup(func() {
		e.of(scaledObjects).Patch(context.WithoutCancel(t.Context()), name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
}

func testKEDARevert(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("kd", class("keda"), external("2")))
	on.await(t, scaledObjects, "kd-predictor", exists)
	on.playKEDA(t, "kd-predictor")
	edited := on.patchJSON(t, scaledObjects, "kd-predictor",
		`[{"op":"replace","path":"/spec/triggers/0/metadata/threshold","value":"9"}]`)
	reverted := on.await(t, scaledObjects, "kd-predictor", func(object *unstructured.Unstructured) string {
		if object.GetGeneration() <= edited.GetGeneration() {
			return "not written again"
		}
		return field("spec.triggers.0.metadata.threshold", "2")(object)
	})
	if len(reverted.GetFinalizers()) != 0 || reverted.GetLabels()["scaledobject.keda.sh/name"] != "" {
		t.Errorf("finalizers %v, labels %v: KEDA's survived the PUT", reverted.GetFinalizers(), reverted.GetLabels())
	}
	for _, entry := range reverted.GetManagedFields() {
		if entry.Manager == "tuner" && strings.Contains(entry.FieldsV1.String(), "f:triggers") {
			t.Error("the reverted edit left its manager behind")
		}
	}
}

func testKEDAPause(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("kd", class("keda"), external("2")))
	on.await(t, scaledObjects, "kd-predictor", exists)
	on.patch(t, scaledObjects, "kd-predictor", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`)
	// A deleted Service comes back with the next reconcile.
	if err := on.of(services).Delete(t.Context(), "kd-predictor", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	on.await(t, services, "kd-predictor", exists)
	if scaled := on.get(t, scaledObjects, "kd-predictor"); scaled.GetAnnotations()["autoscaling.keda.sh/paused"] != "true" {
		t.Error("a reconcile without a change ended the pause")
	}
	on.patch(t, inferenceServices, "kd", `{"spec":{"predictor":{"maxReplicas":5}}}`)
	scaled := on.await(t, scaledObjects, "kd-predictor", field("spec.maxReplicaCount", "5"))
	if _, paused := scaled.GetAnnotations()["autoscaling.keda.sh/paused"]; paused {
		t.Error("the pause outlived a change of the spec")
	}
}

func testConflictFlap(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("kd", class("keda"), external("2")))
	on.await(t, scaledObjects, "kd-predictor", exists)
	on.roll(t, "kd-predictor", 1, 1, 1, 1)
	on.await(t, inferenceServices, "kd", condition("Ready", "True", ""))
	// Someone else writes all the time, as KEDA does around a change.
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			on.of(scaledObjects).Patch(ctx, "kd-predictor", types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"annotations":{"count":"%d"}}}`, i), metav1.PatchOptions{})
		}
	})
	for threshold := 3; ; threshold++ {
		seen := on.patchJSON(t, inferenceServices, "kd", fmt.Sprintf(
			`[{"op":"replace","path":"/spec/predictor/autoScaling/metrics/0/external/target/value","value":"%d"}]`, threshold))
		flapped := false
		on.await(t, inferenceServices, "kd", func(object *unstructured.Unstructured) string {
			ready := conditionOf(object, "PredictorReady")
			flapped = strings.Contains(fmt.Sprint(ready["message"]), "the object has been modified")
			scaled := on.get(t, scaledObjects, "kd-predictor")
			if flapped || fmt.Sprint(at(scaled.Object, "spec.triggers.0.metadata.threshold")) == fmt.Sprint(threshold) {
				return ""
			}
			return "neither in conflict nor done since " + seen.GetResourceVersion()
		})
		if flapped {
			stop()
			writer.Wait()
			on.await(t, scaledObjects, "kd-predictor", field("spec.triggers.0.metadata.threshold", fmt.Sprint(threshold)))
			on.await(t, inferenceServices, "kd", condition("Ready", "True", ""))
			return
		}
	}
}

func testClassChange(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("hp", nil, nil))
	hpa := on.await(t, autoscalers, "hp-predictor", exists)
	if got := at(hpa.Object, "spec.metrics.0.resource.target.averageUtilization"); got != int64(80) {
		t.Errorf("CPU target %v, want 80", got)
	}
	on.patch(t, inferenceServices, "hp", `{"metadata":{"annotations":{"serving.kserve.io/autoscalerClass":"external"}}}`)
	on.await(t, autoscalers, "hp-predictor", gone)
	// The pods restart with it: the class is among the copied annotations.
	on.await(t, deployments, "hp-predictor", func(object *unstructured.Unstructured) string {
		annotations, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "annotations")
		if annotations["serving.kserve.io/autoscalerClass"] != "external" {
			return fmt.Sprint("template annotations ", annotations)
		}
		return ""
	})
}

func testAnnotationRestarts(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("kd", class("keda"), external("2")))
	on.await(t, scaledObjects, "kd-predictor", exists)
	on.patch(t, inferenceServices, "kd", `{"metadata":{"annotations":{"note":"hello"},"labels":{"team":"a"}}}`)
	copied := func(fields ...string) func(*unstructured.Unstructured) string {
		return func(object *unstructured.Unstructured) string {
			annotations, _, _ := unstructured.NestedStringMap(object.Object, append(fields, "annotations")...)
			labels, _, _ := unstructured.NestedStringMap(object.Object, append(fields, "labels")...)
			if annotations["note"] != "hello" || labels["team"] != "a" {
				return fmt.Sprint("annotations ", annotations, " labels ", labels)
			}
			return ""
		}
	}
	on.await(t, deployments, "kd-predictor", copied("spec", "template", "metadata"))
	on.await(t, scaledObjects, "kd-predictor", copied("metadata"))
}

func testReplicas(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("ext", class("external"), nil))
	on.make(t, inferenceServices, isvc("fix", class("none"), nil))
	for _, name := range []string{"ext-predictor", "fix-predictor"} {
		on.await(t, deployments, name, field("spec.replicas", "1"))
		on.patch(t, deployments, name, `{"spec":{"replicas":3}}`)
	}
	on.await(t, deployments, "fix-predictor", field("spec.replicas", "1"))
	on.patch(t, deployments, "ext-predictor", `{"spec":{"minReadySeconds":7}}`)
	live := on.await(t, deployments, "ext-predictor", field("spec.minReadySeconds", fmt.Sprint(nil)))
	if got := at(live.Object, "spec.replicas"); got != int64(3) {
		t.Errorf("replicas %v after a revert, want the 3 that someone set", got)
	}
}

func testStop(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("kd", class("keda"), external("2")))
	on.await(t, scaledObjects, "kd-predictor", exists)
	on.patch(t, inferenceServices, "kd", `{"metadata":{"annotations":{"serving.kserve.io/stop":"true"}}}`)
	on.await(t, deployments, "kd-predictor", gone)
	on.await(t, scaledObjects, "kd-predictor", gone)
	on.await(t, inferenceServices, "kd", condition("Ready", "False", "Stopped"))
	on.patch(t, inferenceServices, "kd", `{"metadata":{"annotations":{"serving.kserve.io/stop":null}}}`)
	on.await(t, deployments, "kd-predictor", exists)
	on.await(t, scaledObjects, "kd-predictor", exists)
}

func testNoRuntime(t *testing.T, on env) {
	service := isvc("sk", class("external"), map[string]any{"model": map[string]any{
		"modelFormat": map[string]any{"name": "vllm"}, "storageUri": "s3://models/a",
	}})
	unstructured.RemoveNestedField(service.Object, "spec", "predictor", "containers")
	on.make(t, inferenceServices, service)
	on.await(t, inferenceServices, "sk", condition("PredictorReady", "False", "NoSupportingRuntime"))
	on.patch(t, inferenceServices, "sk", `{"spec":{"predictor":{"model":{"image":"lab.test/engine:1"}}}}`)
	deployment := on.await(t, deployments, "sk-predictor", exists)
	if got := at(deployment.Object, "spec.template.spec.containers.0.name"); got != "kserve-container" {
		t.Errorf("container %v, want kserve-container", got)
	}
}

func testDeletion(t *testing.T, on env) {
	on.make(t, inferenceServices, isvc("ext", class("external"), nil))
	on.await(t, inferenceServices, "ext", func(object *unstructured.Unstructured) string {
		return cmp.Diff([]string{"inferenceservice.finalizers"}, object.GetFinalizers())
	})
	if err := on.of(inferenceServices).Delete(t.Context(), "ext", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	on.await(t, inferenceServices, "ext", gone)
}
