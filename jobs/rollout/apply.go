package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// apply applies the plan's objects in order. Existing objects are patched:
// fields of other managers stay theirs, and a field that another manager set to
// another value is a conflict, not an overwrite.
func (r *run) apply(ctx context.Context) error {
	for _, raw := range r.plan.Objects {
		var object unstructured.Unstructured
		if err := json.Unmarshal(raw, &object.Object); err != nil {
			return failure.New(failure.Usage, "", "read plan: an object is not valid: %w", err)
		}
		gvk := object.GroupVersionKind()
		mapping, err := r.deps.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			hint := ""
			if gvk.Group == "serving.kserve.io" {
				hint = "KServe is not installed in this cluster; `kubectl inference rollout --kind deployment` does without"
			}
			return failure.New(failure.NotFound, hint, "apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(r.plan.Namespace)
		}
		before, err := r.deps.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return denied(err, "get", object)
		}
		after, err := r.deps.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).
			Apply(ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: cluster.FieldManager})
		if err != nil {
			return denied(err, "apply", object)
		}
		verb := "unchanged"
		switch {
		case before == nil:
			verb = "created"
		case before.GetResourceVersion() != after.GetResourceVersion():
			verb = "configured"
		}
		if image := engineImage(object); image != "" {
			r.image = image
		}
		r.changed = r.changed || verb != "unchanged"
		r.say("apply", "%s %s %s", object.GetKind(), object.GetName(), verb)
	}
	return nil
}

// engineImage returns the image of an InferenceService's first container, or "".
func engineImage(object unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "predictor", "containers")
	if len(containers) == 0 {
		return ""
	}
	engine, _ := containers[0].(map[string]any)
	image, _ := engine["image"].(string)
	return image
}

// grantHint mends a right that the Job lacks.
const grantHint = "give the Job's ServiceAccount what it needs: `kubectl inference manifests rbac/rollout | kubectl apply -f -`"

// denied puts an API error on object into words.
func denied(err error, verb string, object unstructured.Unstructured) error {
	kind, hint := failure.Failed, ""
	switch {
	case apierrors.IsForbidden(err):
		kind, hint = failure.Denied, grantHint
	case apierrors.IsConflict(err):
		kind, hint = failure.Differs, "another manager owns the field: change it there, or remove the field from your object"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		kind = failure.Usage
	}
	return failure.New(kind, hint, "%s %s %s/%s: %w", verb, object.GetKind(), object.GetNamespace(), object.GetName(), err)
}

func (r *run) say(name, format string, args ...any) {
	r.deps.Emit(record.Event{Time: r.deps.Now(), Name: name, Message: fmt.Sprintf(format, args...)})
}
