package bench

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

var (
	scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	hpas          = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// scaler is what decides the number of a target's replicas.
type scaler struct {
	// object is a ScaledObject, or an HPA that no ScaledObject made.
	object *unstructured.Unstructured
	// owner is the InferenceService or LLMInferenceService that made it, nil
	// where it stands alone.
	owner *unstructured.Unstructured
	// target is the workload, as the scaler names it.
	apiVersion, kind, target string
	minimum, maximum         int64
	// paused: it exists and changes nothing.
	paused bool
}

// live says whether replicas can change by themselves.
func (s scaler) live() bool { return !s.paused && s.minimum != s.maximum }

// String names it as kubectl does.
func (s scaler) String() string {
	if s.object.GetKind() == "ScaledObject" {
		return "scaledobject/" + s.object.GetName()
	}
	return "hpa/" + s.object.GetName()
}

// scalerOf finds what scales a workload; nil where nothing does, or where it may
// not be seen: then unread says what could not be read.
func scalerOf(ctx context.Context, client dynamic.Interface, namespace, workload string) (found *scaler, unread string, err error) {
	for _, resource := range []schema.GroupVersionResource{scaledObjects, hpas} {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			continue
		case apierrors.IsForbidden(err):
			unread = resource.Resource
			continue
		case err != nil:
			return nil, "", kube.Explain(err, "list %s in %s", resource.Resource, namespace)
		}
		for i := range list.Items {
			one := read(&list.Items[i])
			if one.target != workload {
				continue
			}
			// An HPA's ScaledObject came first, if it could be read.
			one.owner, err = controller(ctx, client, one.object)
			return &one, "", err
		}
	}
	return nil, unread, nil
}

func read(object *unstructured.Unstructured) scaler {
	one := scaler{object: object}
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
	number := func(standard int64, path ...string) int64 {
		if value, found, err := unstructured.NestedInt64(object.Object, path...); found && err == nil {
			return value
		}
		return standard
	}
	one.apiVersion, one.kind, one.target = text("spec", "scaleTargetRef", "apiVersion"), text("spec", "scaleTargetRef", "kind"), text("spec", "scaleTargetRef", "name")
	if one.kind == "" {
		one.apiVersion, one.kind = "apps/v1", "Deployment"
	}
	if object.GetKind() == "ScaledObject" {
		one.minimum, one.maximum = number(0, "spec", "minReplicaCount"), number(100, "spec", "maxReplicaCount")
		one.paused = paused(object.GetAnnotations())
		return one
	}
	one.minimum, one.maximum = number(1, "spec", "minReplicas"), number(1, "spec", "maxReplicas")
	return one
}

// controller gets the object that made another, where its kind is one whose
// rules are known; of another kind only its name is filled in.
func controller(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil, nil
	}
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("read the owner of %s: %w", object.GetName(), err)
	}
	resource, known := map[string]string{"InferenceService": "inferenceservices", "LLMInferenceService": "llminferenceservices"}[owner.Kind]
	if known {
		found, err := client.Resource(group.WithResource(resource)).Namespace(object.GetNamespace()).Get(ctx, owner.Name, metav1.GetOptions{})
		if err == nil {
			return found, nil
		}
	}
	named := &unstructured.Unstructured{}
	named.SetAPIVersion(owner.APIVersion)
	named.SetKind(owner.Kind)
	named.SetName(owner.Name)
	named.SetNamespace(object.GetNamespace())
	return named, nil
}
