package controller

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rules say how a child is kept as it is wanted.
type rules struct {
	// keepReplicas leaves the live spec.replicas alone.
	keepReplicas bool
	// controlled refuses a live object that another object controls, or none.
	controlled bool
	// exact takes labels and annotations back that were not asked for. Without
	// it they last until the next write for another reason.
	exact bool
	// keepKEDA keeps, through a write, KEDA's name label and the finalizers.
	keepKEDA bool
}

const (
	kedaNameLabel = "scaledobject.keda.sh/name"
	// revisionPrefix marks the Deployment controller's own annotations.
	revisionPrefix = "deployment.kubernetes.io/"
)

// read returns a child from the cache, or from the API server while the cache
// has not caught up; nil when there is none.
func (c *Controller) read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	if c.cached(resource) {
		found, err := c.informers.ForResource(resource).Lister().ByNamespace(namespace).Get(name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", resource.Resource, name, err)
		}
		return found.(*unstructured.Unstructured), nil
	}
	found, err := c.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", resource.Resource, name, err)
	}
	return found, nil
}

// ensure creates wanted, or makes the live object equal to it with a full PUT,
// and returns the live object. The PUT carries the version that was read: when
// someone else wrote in the meantime it fails with a conflict.
func (c *Controller) ensure(ctx context.Context, resource schema.GroupVersionResource, wanted *unstructured.Unstructured, keep rules) (*unstructured.Unstructured, error) {
	client := c.client.Resource(resource).Namespace(wanted.GetNamespace())
	live, err := c.read(ctx, resource, wanted.GetNamespace(), wanted.GetName())
	if err != nil {
		return nil, err
	}
	if live == nil {
		created, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: manager})
		if err != nil {
			return nil, fmt.Errorf("create %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
		}
		return created, nil
	}
	if keep.controlled && !sameController(live, wanted) {
		return nil, fmt.Errorf("update %s %s/%s: it is not controlled by %s %s", wanted.GetKind(),
			wanted.GetNamespace(), wanted.GetName(), wanted.GetOwnerReferences()[0].Kind, wanted.GetOwnerReferences()[0].Name)
	}
	next := prepare(live, wanted, keep)
	// The API server's defaults are part of what is wanted; a dry run adds them.
	defaulted, err := client.Update(ctx, next, metav1.UpdateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, fmt.Errorf("update %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
	}
	if same(live, defaulted, next, keep) {
		return live, nil
	}
	updated, err := client.Update(ctx, next, metav1.UpdateOptions{FieldManager: manager})
	if err != nil {
		return nil, fmt.Errorf("update %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
	}
	c.Log.Info("wrote", "kind", wanted.GetKind(), "namespace", wanted.GetNamespace(), "name", wanted.GetName())
	return updated, nil
}

// prepare returns wanted as it is to be put in the place of live.
func prepare(live, wanted *unstructured.Unstructured, keep rules) *unstructured.Unstructured {
	next := wanted.DeepCopy()
	next.SetResourceVersion(live.GetResourceVersion())
	if keep.keepReplicas {
		unstructured.RemoveNestedField(next.Object, "spec", "replicas")
		if replicas, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "replicas"); found {
			unstructured.SetNestedField(next.Object, replicas, "spec", "replicas")
		}
	}
	if keep.keepKEDA {
		next.SetFinalizers(live.GetFinalizers())
		if name, found := live.GetLabels()[kedaNameLabel]; found {
			labels := next.GetLabels()
			labels[kedaNameLabel] = name
			next.SetLabels(labels)
		}
	}
	annotations := maps.Clone(next.GetAnnotations())
	for key, value := range live.GetAnnotations() {
		if strings.HasPrefix(key, revisionPrefix) {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		next.SetAnnotations(annotations)
	}
	return next
}

// same says whether live already is what a PUT of next would make of it.
func same(live, defaulted, next *unstructured.Unstructured, keep rules) bool {
	if !equality.Semantic.DeepEqual(live.Object["spec"], defaulted.Object["spec"]) {
		return false
	}
	if keep.exact {
		return equality.Semantic.DeepEqual(live.GetLabels(), next.GetLabels()) &&
			equality.Semantic.DeepEqual(live.GetAnnotations(), next.GetAnnotations())
	}
	return contains(live.GetLabels(), next.GetLabels()) && contains(live.GetAnnotations(), next.GetAnnotations())
}

func contains(all, part map[string]string) bool {
	for key, value := range part {
		if got, found := all[key]; !found || got != value {
			return false
		}
	}
	return true
}

func sameController(live, wanted *unstructured.Unstructured) bool {
	have, want := metav1.GetControllerOf(live), metav1.GetControllerOf(wanted)
	return have != nil && want != nil && have.UID == want.UID
}

// remove deletes a child that the owner controls; another's stays.
func (c *Controller) remove(ctx context.Context, resource schema.GroupVersionResource, owner *unstructured.Unstructured, name string) error {
	live, err := c.read(ctx, resource, owner.GetNamespace(), name)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil {
		return err
	}
	if controller := metav1.GetControllerOf(live); controller == nil || controller.UID != owner.GetUID() {
		return nil
	}
	err = c.client.Resource(resource).Namespace(owner.GetNamespace()).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(live.GetUID())),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", resource.Resource, name, err)
	}
	return nil
}
