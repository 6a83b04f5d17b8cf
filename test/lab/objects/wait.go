package objects

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
)

// WaitRolledOut waits until every Deployment of the list runs what it asks for.
func (c *Client) WaitRolledOut(ctx context.Context, list []*unstructured.Unstructured) error {
	for _, object := range list {
		if object.GetKind() != "Deployment" {
			continue
		}
		err := process.Poll(ctx, func(ctx context.Context) error {
			resource, err := c.resource(object)
			if err != nil {
				return err
			}
			live, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			return rolledOut(live)
		})
		if err != nil {
			return fmt.Errorf("wait for Deployment %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}

// rolledOut is what `kubectl rollout status` asks of a Deployment.
func rolledOut(live *unstructured.Unstructured) error {
	number := func(fields ...string) int64 {
		n, found, err := unstructured.NestedInt64(live.Object, fields...)
		if err != nil || !found {
			return 0
		}
		return n
	}
	want := number("spec", "replicas")
	updated, total, available := number("status", "updatedReplicas"), number("status", "replicas"), number("status", "availableReplicas")
	switch {
	case number("status", "observedGeneration") < live.GetGeneration():
		return errors.New("not looked at yet")
	case updated < want:
		return fmt.Errorf("%d of %d replicas are new", updated, want)
	case total > updated:
		return fmt.Errorf("%d old replicas are left", total-updated)
	case available < updated:
		return fmt.Errorf("%d of %d replicas are available", available, updated)
	}
	return nil
}

// Delete deletes the objects, last first, and waits until they are gone. Those
// that are not there are passed over.
func (c *Client) Delete(ctx context.Context, list []*unstructured.Unstructured) error {
	background := metav1.DeletePropagationBackground
	for i := len(list) - 1; i >= 0; i-- {
		object := list[i]
		resource, err := c.resource(object)
		if err == nil {
			err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range list {
		err := process.Poll(ctx, func(ctx context.Context) error {
			resource, err := c.resource(object)
			if err != nil {
				return err
			}
			_, err = resource.Get(ctx, object.GetName(), metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			}
			return errors.New("still there")
		})
		if err != nil {
			return fmt.Errorf("wait for %s %s to go: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
