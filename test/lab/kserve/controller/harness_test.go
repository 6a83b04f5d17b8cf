package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	inferenceServices = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1beta1", Resource: "inferenceservices"}
	llmServices       = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceservices"}
	llmConfigs        = schema.GroupVersionResource{Group: "serving.kserve.io", Version: "v1alpha2", Resource: "llminferenceserviceconfigs"}
	deployments       = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services          = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	ingresses         = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	autoscalers       = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	scaledObjects     = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
)

// patience bounds every wait; a wait that succeeds takes a fraction of it.
const patience = 30 * time.Second

// env is an API server with the reconciler at work on it. A scenario gets a copy
// with its own namespace.
type env struct {
	client    dynamic.Interface
	namespace string
}

// in returns the environment with a fresh namespace.
func (e env) in(t *testing.T) env {
	t.Helper()
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "llm-"},
	}}
	made, err := e.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.namespace = made.GetName()
	return e
}

func (e env) of(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return e.client.Resource(resource).Namespace(e.namespace)
}

// make creates an object in the scenario's namespace.
func (e env) make(t *testing.T, resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	made, err := e.of(resource).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// get reads an object, nil when there is none.
func (e env) get(t *testing.T, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := e.of(resource).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// patch merges a JSON document into an object, by its field manager `tuner`.
func (e env) patch(t *testing.T, resource schema.GroupVersionResource, name, document string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	return e.patchAs(t, types.MergePatchType, resource, name, document, subresources...)
}

// patchJSON applies a JSON patch.
func (e env) patchJSON(t *testing.T, resource schema.GroupVersionResource, name, document string) *unstructured.Unstructured {
	t.Helper()
	return e.patchAs(t, types.JSONPatchType, resource, name, document)
}

func (e env) patchAs(t *testing.T, kind types.PatchType, resource schema.GroupVersionResource, name, document string, subresources ...string) *unstructured.Unstructured {
	t.Helper()
	patched, err := e.of(resource).Patch(t.Context(), name, kind, []byte(document),
		metav1.PatchOptions{FieldManager: "tuner"}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// await watches an object until want returns "", which else says what is still
// missing; object is nil while there is none.
func (e env) await(t *testing.T, resource schema.GroupVersionResource, name string, want func(object *unstructured.Unstructured) string) *unstructured.Unstructured {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	missing := "it was never seen"
	for ctx.Err() == nil {
		only := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
		list, err := e.of(resource).List(ctx, only)
		if err != nil {
			missing = err.Error()
			continue
		}
		var object *unstructured.Unstructured
		if len(list.Items) > 0 {
			object = &list.Items[0]
		}
		if missing = want(object); missing == "" {
			return object
		}
		// From where the list ends: nothing that happens in between is lost.
		only.ResourceVersion = list.GetResourceVersion()
		watch, err := e.of(resource).Watch(ctx, only)
		if err != nil {
			missing = err.Error()
			continue
		}
		for event := range watch.ResultChan() {
			object, isObject := event.Object.(*unstructured.Unstructured)
			if !isObject {
				break
			}
			if event.Type == "DELETED" {
				object = nil
			}
			if missing = want(object); missing == "" {
				watch.Stop()
				return object
			}
		}
		watch.Stop()
	}
	t.Fatalf("%s %s: %s", resource.Resource, name, missing)
	return nil
}

// exists is the want of [env.await] that any object fulfils.
func exists(object *unstructured.Unstructured) string {
	if object == nil {
		return "does not exist"
	}
	return ""
}

// gone is the want of [env.await] that no object fulfils.
func gone(object *unstructured.Unstructured) string {
	if object != nil {
		return "still exists"
	}
	return ""
}

// field is the want of [env.await] that the field at a dotted path, numbers
// being indexes, prints as value.
func field(path, value string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		if object == nil {
			return "does not exist"
		}
		if got := at(object.Object, path); fmt.Sprint(got) != value {
			return fmt.Sprintf("%s is %v, want %s", path, got, value)
		}
		return ""
	}
}

// at returns the value at a dotted path, nil where there is none.
func at(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch part := value.(type) {
		case map[string]any:
			value = part[key]
		case []any:
			var index int
			if _, err := fmt.Sscan(key, &index); err != nil || index >= len(part) {
				return nil
			}
			value = part[index]
		default:
			return nil
		}
	}
	return value
}

// condition is the want of [env.await] that a condition has a status and a
// reason.
func condition(kind, status, reason string) func(*unstructured.Unstructured) string {
	return func(object *unstructured.Unstructured) string {
		if object == nil {
			return "does not exist"
		}
		got := conditionOf(object, kind)
		if got["status"] != status || fmt.Sprint(got["reason"]) != reasonText(reason) {
			return fmt.Sprintf("condition %s is %v, want %s %s", kind, got, status, reason)
		}
		return ""
	}
}

func reasonText(reason string) string {
	if reason == "" {
		return fmt.Sprint(nil)
	}
	return reason
}

func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if found := one.(map[string]any); found["type"] == kind {
			return found
		}
	}
	return nil
}

// roll plays the Deployment controller: it sets a status as it writes it.
func (e env) roll(t *testing.T, name string, generation, replicas, updated, available int) {
	t.Helper()
	status, progressing := "True", "NewReplicaSetAvailable"
	if available == 0 {
		status = "False"
	}
	if updated != replicas || available != replicas {
		progressing = "ReplicaSetUpdated"
	}
	e.patch(t, deployments, name, fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%d,
		"readyReplicas":%d,"availableReplicas":%d,"conditions":[
		{"type":"Available","status":%q,"reason":"MinimumReplicas","message":"availability"},
		{"type":"Progressing","status":"True","reason":%q,"message":"progress"}]}}`,
		generation, replicas, updated, available, available, status, progressing), "status")
}
