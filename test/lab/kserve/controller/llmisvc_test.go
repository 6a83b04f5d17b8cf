package controller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLLMInferenceService(t *testing.T) {
	scenarios := map[string]func(t *testing.T, on env){
		"decode and prefill":                                 testDecodePrefill,
		"scaling mirrors KEDA":                               testScalingCondition,
		"an edit of the ScaledObject is overwritten":         testLLMRevert,
		"a pause is overwritten":                             testLLMPause,
		"an annotation reaches nothing":                      testLLMAnnotation,
		"scaling comes from a base":                          testBaseRefs,
		"one trigger of a service replaces the base's list":  testBaseRefsReplaced,
		"a base that is not there":                           testBaseMissing,
		"a ScaledObject of the name that is another's":       testForeignScaledObject,
		"long names are hashed":                              testLongNames,
		"a threshold that is no number is let through":       testBadThreshold,
		"replicas are kept until they are fixed":             testLLMReplicas,
		"without scaling the ScaledObject goes":              testScalingRemoved,
		"stop removes workloads, scalers and scaling status": testLLMStop,
		"workers need what the cluster does not have":        testWorker,
		"WVA scales by its own metric":                       testWVA,
	}
	eachCluster(t, func(t *testing.T, on env) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) { scenario(t, on.in(t)) })
		}
	})
}

// pd is a service with two triggers and a prefill with one.
func pd(name string) *unstructured.Unstructured {
	return llm(name, map[string]any{"scaling": kedaScaling("2", "0.75"), "prefill": prefill("5")})
}

func testDecodePrefill(t *testing.T, on env) {
	made := on.make(t, llmServices, pd("pd"))
	for name, want := range map[string]struct{ role, component, port string }{
		"pd-kserve":         {"decode", "llminferenceservice-workload", "8001"},
		"pd-kserve-prefill": {"prefill", "llminferenceservice-workload-prefill", "8000"},
	} {
		deployment := on.await(t, deployments, name, exists)
		labels := map[string]string{
			"app.kubernetes.io/component": want.component, "app.kubernetes.io/name": "pd",
			"app.kubernetes.io/part-of": "llminferenceservice", "kserve.io/component": "workload", "llm-d.ai/role": want.role,
		}
		if diff := cmp.Diff(labels, deployment.GetLabels()); diff != "" {
			t.Errorf("%s labels (-want +got):\n%s", name, diff)
		}
		if got := fmt.Sprint(at(deployment.Object, "spec.template.spec.containers.0.ports.0.containerPort")); got != want.port {
			t.Errorf("%s port %s, want %s", name, got, want.port)
		}
		if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != made.GetUID() {
			t.Errorf("%s controller %v, want the service", name, owner)
		}
	}
	// Both scalers carry the same labels: only the target tells them apart.
	for name, target := range map[string]string{"pd-kserve-keda": "pd-kserve", "pd-kserve-prefill-keda": "pd-kserve-prefill"} {
		scaled := on.await(t, scaledObjects, name, exists)
		labels := map[string]string{
			"app.kubernetes.io/component": "llminferenceservice-workload", "app.kubernetes.io/name": "pd",
			"app.kubernetes.io/part-of": "llminferenceservice",
		}
		if diff := cmp.Diff(labels, scaled.GetLabels()); diff != "" {
			t.Errorf("%s labels (-want +got):\n%s", name, diff)
		}
		reference := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
		if diff := cmp.Diff(any(reference), at(scaled.Object, "spec.scaleTargetRef")); diff != "" {
			t.Errorf("%s target (-want +got):\n%s", name, diff)
		}
	}
	service := on.await(t, services, "pd-kserve-workload-svc", exists)
	if port, target := at(service.Object, "spec.ports.0.port"), at(service.Object, "spec.ports.0.targetPort"); port != int64(8000) || target != int64(8000) {
		t.Errorf("port %v to %v, want 8000 to 8000", port, target)
	}
	// One patch of both thresholds reaches both scalers.
	on.patchJSON(t, llmServices, "pd", `[
		{"op":"replace","path":"/spec/scaling/keda/triggers/1/metadata/threshold","value":"0.8"},
		{"op":"replace","path":"/spec/prefill/scaling/keda/triggers/0/metadata/threshold","value":"6"}]`)
	decode := on.await(t, scaledObjects, "pd-kserve-keda", field("spec.triggers.1.metadata.threshold", "0.8"))
	if got := at(decode.Object, "spec.triggers.1.name"); got != "t1" {
		t.Errorf("trigger name %v, want t1", got)
	}
	if got := at(decode.Object, "spec.pollingInterval"); got != int64(15) {
		t.Errorf("polling interval %v, want 15", got)
	}
	on.await(t, scaledObjects, "pd-kserve-prefill-keda", field("spec.triggers.0.metadata.threshold", "6"))
}

// kedaSays plays KEDA's verdict on a ScaledObject.
func (e env) kedaSays(t *testing.T, name, status, reason string) {
	t.Helper()
	e.patch(t, scaledObjects, name, fmt.Sprintf(
		`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":"of %s"}]}}`, status, reason, reason), "status")
}

func testScalingCondition(t *testing.T, on env) {
	on.make(t, llmServices, pd("pd"))
	on.await(t, llmServices, "pd", condition("ScalingReady", "False", "ScaledObjectProgressing"))
	on.roll(t, "pd-kserve", 1, 1, 1, 1)
	on.roll(t, "pd-kserve-prefill", 1, 1, 1, 1)
	on.kedaSays(t, "pd-kserve-keda", "True", "ScaledObjectReady")
	on.kedaSays(t, "pd-kserve-prefill-keda", "True", "ScaledObjectReady")
	live := on.await(t, llmServices, "pd", condition("Ready", "True", ""))
	want := map[string]any{
		"primary": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": "pd-kserve", "readyReplicas": int64(1)},
		"prefill": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": "pd-kserve-prefill", "readyReplicas": int64(1)},
		"service": map[string]any{"kind": "Service", "name": "pd-kserve-workload-svc"},
	}
	if diff := cmp.Diff(any(want), at(live.Object, "status.workloads")); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	// A stuck rollout of decode changes nothing.
	on.roll(t, "pd-kserve", 2, 2, 1, 1)
	// A metrics outage makes all of it not Ready, though the pods serve.
	on.kedaSays(t, "pd-kserve-prefill-keda", "False", "TriggerError")
	live = on.await(t, llmServices, "pd", condition("PrefillScalingReady", "False", "TriggerError"))
	for kind, status := range map[string]string{
		"ScalingReady": "True", "MainWorkloadReady": "True", "WorkloadsReady": "False", "Ready": "False", "RouterReady": "True",
	} {
		if got := conditionOf(live, kind)["status"]; got != status {
			t.Errorf("%s %v, want %s", kind, got, status)
		}
	}
	if got := conditionOf(live, "Ready")["message"]; got != "of TriggerError" {
		t.Errorf("message %v, want KEDA's", got)
	}
	on.kedaSays(t, "pd-kserve-prefill-keda", "True", "ScaledObjectReady")
	on.await(t, llmServices, "pd", condition("Ready", "True", ""))
}

func testLLMRevert(t *testing.T, on env) {
	on.make(t, llmServices, pd("pd"))
	on.await(t, scaledObjects, "pd-kserve-keda", exists)
	on.playKEDA(t, "pd-kserve-keda")
	edited := on.patchJSON(t, scaledObjects, "pd-kserve-keda",
		`[{"op":"replace","path":"/spec/triggers/0/metadata/threshold","value":"9"}]`)
	reverted := on.await(t, scaledObjects, "pd-kserve-keda", func(object *unstructured.Unstructured) string {
		if object.GetGeneration() <= edited.GetGeneration() {
			return "not written again"
		}
		return field("spec.triggers.0.metadata.threshold", "2")(object)
	})
	if diff := cmp.Diff([]string{"finalizer.keda.sh"}, reverted.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if got := reverted.GetLabels()["scaledobject.keda.sh/name"]; got != "pd-kserve-keda" {
		t.Errorf("KEDA's label %q did not survive", got)
	}
}

func testLLMPause(t *testing.T, on env) {
	on.make(t, llmServices, pd("pd"))
	on.await(t, scaledObjects, "pd-kserve-keda", exists)
	on.patch(t, scaledObjects, "pd-kserve-keda", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`)
	on.await(t, scaledObjects, "pd-kserve-keda", func(object *unstructured.Unstructured) string {
		return cmp.Diff(map[string]string(nil), object.GetAnnotations())
	})
}

func testLLMAnnotation(t *testing.T, on env) {
	on.make(t, llmServices, pd("pd"))
	before := on.await(t, deployments, "pd-kserve", exists)
	scaled := on.await(t, scaledObjects, "pd-kserve-keda", exists)
	on.patch(t, llmServices, "pd", `{"metadata":{"annotations":{"note":"hello"},"labels":{"team":"a"}}}`)
	// A change that does reach the prefill proves that the note was seen.
	on.patch(t, llmServices, "pd", `{"spec":{"prefill":{"scaling":{"maxReplicas":9}}}}`)
	on.await(t, scaledObjects, "pd-kserve-prefill-keda", field("spec.maxReplicaCount", "9"))
	if after := on.get(t, deployments, "pd-kserve"); after.GetGeneration() != before.GetGeneration() {
		t.Errorf("Deployment generation %d, was %d", after.GetGeneration(), before.GetGeneration())
	}
	if after := on.get(t, scaledObjects, "pd-kserve-keda"); after.GetResourceVersion() != scaled.GetResourceVersion() {
		t.Error("the ScaledObject was written")
	}
}

func testBaseRefs(t *testing.T, on env) {
	on.make(t, llmConfigs, config("base", map[string]any{"scaling": kedaScaling("2", "0.75")}))
	made := on.make(t, llmServices, llm("one", map[string]any{"baseRefs": []any{map[string]any{"name": "base"}}}))
	if scaling := at(made.Object, "spec.scaling"); scaling != nil {
		t.Errorf("live spec has scaling %v, want it in the base alone", scaling)
	}
	on.await(t, scaledObjects, "one-kserve-keda", field("spec.triggers.1.metadata.threshold", "0.75"))
	live := on.await(t, llmServices, "one", field("status.appliedConfigs.1.name", "base"))
	if got := at(live.Object, "status.appliedConfigs.1.source"); got != "UserRef" {
		t.Errorf("source %v, want UserRef", got)
	}
	on.patchJSON(t, llmConfigs, "base",
		`[{"op":"replace","path":"/spec/scaling/keda/triggers/1/metadata/threshold","value":"0.9"}]`)
	on.await(t, scaledObjects, "one-kserve-keda", field("spec.triggers.1.metadata.threshold", "0.9"))
}

func testBaseRefsReplaced(t *testing.T, on env) {
	on.make(t, llmConfigs, config("base", map[string]any{"scaling": kedaScaling("2", "0.75")}))
	on.make(t, llmServices, llm("one", map[string]any{
		"baseRefs": []any{map[string]any{"name": "base"}},
		"scaling": map[string]any{"maxReplicas": int64(4), "keda": map[string]any{"triggers": []any{
			map[string]any{"type": "prometheus", "metadata": map[string]any{"threshold": "3"}},
		}}},
	}))
	scaled := on.await(t, scaledObjects, "one-kserve-keda", field("spec.triggers.0.metadata.threshold", "3"))
	want := []any{map[string]any{"type": "prometheus", "metadata": map[string]any{"threshold": "3"}}}
	if diff := cmp.Diff(any(want), at(scaled.Object, "spec.triggers")); diff != "" {
		t.Errorf("triggers (-want +got):\n%s", diff)
	}
}

func testBaseMissing(t *testing.T, on env) {
	on.make(t, llmServices, llm("one", map[string]any{"baseRefs": []any{map[string]any{"name": "base"}}}))
	on.await(t, llmServices, "one", condition("PresetsCombined", "False", "CombineBaseError"))
	on.make(t, llmConfigs, config("base", map[string]any{"scaling": kedaScaling("2")}))
	on.await(t, scaledObjects, "one-kserve-keda", exists)
	on.await(t, llmServices, "one", condition("PresetsCombined", "True", ""))
}

func testForeignScaledObject(t *testing.T, on env) {
	on.make(t, scaledObjects, named("keda.sh/v1alpha1", "ScaledObject", "one-kserve-keda", nil, map[string]any{
		"scaleTargetRef": map[string]any{"name": "one-kserve"},
		"triggers":       []any{map[string]any{"type": "cpu", "metadata": map[string]any{"value": "50"}}},
	}))
	on.make(t, llmServices, llm("one", map[string]any{"scaling": kedaScaling("2")}))
	live := on.await(t, llmServices, "one", condition("Ready", "False", "ReconcileScalingError"))
	if got := fmt.Sprint(conditionOf(live, "Ready")["message"]); !strings.Contains(got, "it is not controlled by") {
		t.Errorf("message %q", got)
	}
	if got := at(on.get(t, scaledObjects, "one-kserve-keda").Object, "spec.triggers.0.type"); got != "cpu" {
		t.Errorf("trigger %v: it was taken over", got)
	}
}

func testLongNames(t *testing.T, on env) {
	name := "a-very-long-model-service-name-which-goes-on-and-on-and-on-ok"
	made := on.make(t, llmServices, llm(name, map[string]any{"scaling": kedaScaling("2")}))
	list := func() []unstructured.Unstructured {
		found, err := on.of(scaledObjects).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found.Items
	}
	live := on.await(t, llmServices, name, func(object *unstructured.Unstructured) string {
		if at(object.Object, "status.workloads.primary.name") == nil {
			return "no primary workload"
		}
		return ""
	})
	primary := fmt.Sprint(at(live.Object, "status.workloads.primary.name"))
	if len(primary) != 63 || !strings.HasPrefix(primary, "a-very-long-model-servic") || !strings.HasSuffix(primary, "-kserve") {
		t.Errorf("name %s of %d characters", primary, len(primary))
	}
	scaled := list()
	if len(scaled) != 1 || at(scaled[0].Object, "spec.scaleTargetRef.name") != primary {
		t.Fatalf("ScaledObjects %v, want one for %s", scaled, primary)
	}
	if owner := metav1.GetControllerOf(&scaled[0]); owner == nil || owner.UID != made.GetUID() {
		t.Errorf("controller %v, want the service", owner)
	}
}

func testBadThreshold(t *testing.T, on env) {
	on.make(t, llmServices, llm("one", map[string]any{"scaling": kedaScaling("abc")}))
	on.await(t, scaledObjects, "one-kserve-keda", field("spec.triggers.0.metadata.threshold", "abc"))
	on.kedaSays(t, "one-kserve-keda", "False", "ScaledObjectCheckFailed")
	live := on.await(t, llmServices, "one", condition("ScalingReady", "False", "ScaledObjectCheckFailed"))
	if got := at(live.Object, "status.observedGeneration"); got != live.GetGeneration() {
		t.Errorf("observed generation %v, want %d", got, live.GetGeneration())
	}
}

func testLLMReplicas(t *testing.T, on env) {
	on.make(t, llmServices, llm("one", nil))
	on.await(t, deployments, "one-kserve", field("spec.replicas", "1"))
	on.patch(t, deployments, "one-kserve", `{"spec":{"replicas":3}}`)
	on.patch(t, llmServices, "one", `{"spec":{"template":{"terminationGracePeriodSeconds":7}}}`)
	live := on.await(t, deployments, "one-kserve", field("spec.template.spec.terminationGracePeriodSeconds", "7"))
	if got := at(live.Object, "spec.replicas"); got != int64(3) {
		t.Errorf("replicas %v, want the 3 that someone set", got)
	}
	on.patch(t, llmServices, "one", `{"spec":{"replicas":2}}`)
	on.await(t, deployments, "one-kserve", field("spec.replicas", "2"))
}

func testScalingRemoved(t *testing.T, on env) {
	on.make(t, llmServices, llm("one", map[string]any{"scaling": kedaScaling("2")}))
	on.await(t, scaledObjects, "one-kserve-keda", exists)
	on.patch(t, llmServices, "one", `{"spec":{"scaling":null,"replicas":2}}`)
	on.await(t, scaledObjects, "one-kserve-keda", gone)
	on.await(t, deployments, "one-kserve", field("spec.replicas", "2"))
	on.await(t, llmServices, "one", func(object *unstructured.Unstructured) string {
		if left := conditionOf(object, "ScalingReady"); left != nil {
			return fmt.Sprint("condition left: ", left)
		}
		return ""
	})
}

func testLLMStop(t *testing.T, on env) {
	on.make(t, llmServices, pd("pd"))
	on.await(t, scaledObjects, "pd-kserve-prefill-keda", exists)
	on.patch(t, llmServices, "pd", `{"metadata":{"annotations":{"serving.kserve.io/stop":"true"}}}`)
	for _, name := range []string{"pd-kserve", "pd-kserve-prefill"} {
		on.await(t, deployments, name, gone)
		on.await(t, scaledObjects, name+"-keda", gone)
	}
	live := on.await(t, llmServices, "pd", condition("Ready", "False", "Stopped"))
	for _, kind := range []string{"ScalingReady", "PrefillScalingReady"} {
		if left := conditionOf(live, kind); left != nil {
			t.Errorf("condition left: %v", left)
		}
	}
}

func testWorker(t *testing.T, on env) {
	on.make(t, llmServices, llm("mn", map[string]any{"scaling": kedaScaling("2"), "worker": template()}))
	on.await(t, llmServices, "mn", condition("Ready", "False", "ReconcileMultiNodeWorkloadError"))
	if on.get(t, scaledObjects, "mn-kserve-keda") != nil {
		t.Error("a workload that cannot be made has a ScaledObject")
	}
}

func testWVA(t *testing.T, on env) {
	on.make(t, llmServices, llm("one", map[string]any{"scaling": wvaScaling()}))
	scaled := on.await(t, scaledObjects, "one-kserve-keda", field("spec.triggers.0.name", "wva-desired-replicas"))
	if got := at(scaled.Object, "spec.triggers.0.metadata.threshold"); got != "1" {
		t.Errorf("threshold %v, want 1", got)
	}
	if got := scaled.GetAnnotations()["llm-d.ai/managed"]; got != "true" {
		t.Errorf("annotations %v lack WVA's mark", scaled.GetAnnotations())
	}
	on.patch(t, llmServices, "one", `{"spec":{"scaling":{"wva":{"keda":null,"hpa":{}}}}}`)
	hpa := on.await(t, autoscalers, "one-kserve-hpa", exists)
	if got := at(hpa.Object, "spec.metrics.0.external.metric.name"); got != "wva_desired_replicas" {
		t.Errorf("metric %v", got)
	}
	on.await(t, scaledObjects, "one-kserve-keda", gone)
}
