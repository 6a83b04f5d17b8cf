package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// adopt puts the finalizer on a service that lives and takes it from one that
// is going; its children go by their owner references. It returns nil when
// there is nothing more to do.
func (c *Controller) adopt(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, finalizer string) (*unstructured.Unstructured, error) {
	going := live.GetDeletionTimestamp() != nil
	has := slices.Contains(live.GetFinalizers(), finalizer)
	switch {
	case going && !has:
		return nil, nil
	case going == has:
		next := live.DeepCopy()
		if going {
			next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(one string) bool { return one == finalizer }))
		} else {
			next.SetFinalizers(append(next.GetFinalizers(), finalizer))
		}
		updated, err := c.client.Resource(resource).Namespace(live.GetNamespace()).
			Update(ctx, next, metav1.UpdateOptions{FieldManager: manager})
		if going && (err == nil || apierrors.IsNotFound(err)) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("update finalizer: %w", err)
		}
		return updated, nil
	default:
		return live, nil
	}
}

// writeStatus writes the status where it differs from the live one.
func (c *Controller) writeStatus(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured, status any) error {
	wanted, err := object.Encode(status)
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(live.Object["status"], any(wanted)) {
		return nil
	}
	next := live.DeepCopy()
	next.Object["status"] = wanted
	_, err = c.client.Resource(resource).Namespace(live.GetNamespace()).
		UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// tell records an event about readiness when it changed, as KServe does.
func (c *Controller) tell(live *unstructured.Unstructured, before, after object.Conditions) {
	kind, name := live.GetKind(), live.GetName()
	was, is := before.Get("Ready").Status, after.Get("Ready").Status
	switch {
	case was == is:
	case is == object.True:
		c.recorder.Eventf(live, "Normal", kind+"Ready", "%s [%s] is Ready", kind, name)
	case was == object.True:
		c.recorder.Eventf(live, "Warning", kind+"NotReady", "%s [%s] is no longer Ready because of: %s",
			kind, name, after.Get("Ready").Reason)
	}
}

// asDeployment reads a Deployment; nil stays nil.
func asDeployment(live *unstructured.Unstructured) (*appsv1.Deployment, error) {
	if live == nil {
		return nil, nil
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, deployment); err != nil {
		return nil, fmt.Errorf("read deployment: %w", err)
	}
	return deployment, nil
}
