package controller

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/isvc"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// reconcileISVC makes the children of one InferenceService and writes its
// status. An error stands in the status and is retried.
func (c *Controller) reconcileISVC(ctx context.Context, namespace, name string) error {
	live, err := c.read(ctx, inferenceServices, namespace, name)
	if err != nil || live == nil {
		return err
	}
	if live, err = c.adopt(ctx, inferenceServices, live, isvc.Finalizer); err != nil || live == nil {
		return err
	}
	if live, err = c.respell(ctx, live); err != nil {
		return err
	}
	var last isvc.Status
	if err := object.Decode(live.Object["status"], &last); err != nil {
		return err
	}
	next, failure := c.applyISVC(ctx, live, last)
	if apierrors.IsAlreadyExists(failure) {
		// The cache lags behind a write of our own.
		return failure
	}
	if failure != nil {
		c.recorder.Event(live, "Warning", "InternalError", failure.Error())
		next = isvc.Failed(last, reasonISVC(failure), failure.Error(), c.Now())
	}
	c.tell(live, last.Conditions, next.Conditions)
	return errors.Join(failure, c.writeStatus(ctx, inferenceServices, live, &next))
}

func reasonISVC(failure error) string {
	if errors.Is(failure, isvc.ErrNoRuntime) {
		return "NoSupportingRuntime"
	}
	return "ReconcileFailed"
}

// respell gives the deployment mode its new spelling where admission did not.
func (c *Controller) respell(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live.GetAnnotations()[isvc.ModeAnnotation] != isvc.ModeRaw {
		return live, nil
	}
	next := live.DeepCopy()
	annotations := next.GetAnnotations()
	annotations[isvc.ModeAnnotation] = isvc.ModeStandard
	next.SetAnnotations(annotations)
	return c.client.Resource(inferenceServices).Namespace(live.GetNamespace()).
		Update(ctx, next, metav1.UpdateOptions{FieldManager: manager})
}

func (c *Controller) applyISVC(ctx context.Context, live *unstructured.Unstructured, last isvc.Status) (isvc.Status, error) {
	service, err := isvc.Parse(live)
	if err != nil {
		return last, err
	}
	if service.Stopped() {
		return c.stopISVC(ctx, service, last)
	}
	built, err := service.Deployment()
	if err != nil {
		return last, err
	}
	wanted, err := object.FromTyped(built)
	if err != nil {
		return last, err
	}
	// A class that scales owns the replicas; of a class that says someone else
	// does, the same holds.
	found, err := c.ensure(ctx, deployments, wanted, rules{keepReplicas: service.Class() != isvc.ClassNone})
	if err != nil {
		return last, err
	}
	deployment, err := asDeployment(found)
	if err != nil {
		return last, err
	}
	if wanted, err = object.FromTyped(service.Service()); err != nil {
		return last, err
	}
	if _, err := c.ensure(ctx, services, wanted, rules{}); err != nil {
		return last, err
	}
	if err := c.scaleISVC(ctx, service); err != nil {
		return last, err
	}
	next := service.Observe(last, deployment, c.Now())
	if next.Conditions.Get(isvc.PredictorReady).Status == object.True {
		if wanted, err = object.FromTyped(service.Ingress()); err != nil {
			return last, err
		}
		if _, err := c.ensure(ctx, ingresses, wanted, rules{}); err != nil {
			return last, err
		}
	}
	return next, nil
}

// scaleISVC makes the scaler of the service's class and removes one of another
// class that the service owns.
func (c *Controller) scaleISVC(ctx context.Context, service *isvc.Service) error {
	if service.Class() != isvc.ClassHPA {
		if err := c.remove(ctx, autoscalers, service.Object, service.Component()); err != nil {
			return err
		}
	}
	if service.Class() != isvc.ClassKEDA {
		if err := c.remove(ctx, scaledObjects, service.Object, service.Component()); err != nil {
			return err
		}
	}
	switch service.Class() {
	case isvc.ClassKEDA:
		wanted, err := service.ScaledObject()
		if err != nil {
			return err
		}
		// A full PUT without KEDA's finalizer and label: KEDA puts them back.
		_, err = c.ensure(ctx, scaledObjects, wanted, rules{})
		return err
	case isvc.ClassHPA:
		wanted, err := object.FromTyped(service.HPA())
		if err != nil {
			return err
		}
		_, err = c.ensure(ctx, autoscalers, wanted, rules{})
		return err
	default:
		return nil
	}
}

func (c *Controller) stopISVC(ctx context.Context, service *isvc.Service, last isvc.Status) (isvc.Status, error) {
	err := errors.Join(
		c.remove(ctx, scaledObjects, service.Object, service.Component()),
		c.remove(ctx, autoscalers, service.Object, service.Component()),
		c.remove(ctx, deployments, service.Object, service.Component()),
		c.remove(ctx, ingresses, service.Object, service.Object.GetName()),
	)
	return isvc.Halted(last, c.Now()), err
}
