package controller

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/llmisvc"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// stepError is a failure with the reason that the status gives for it.
type stepError struct {
	reason string
	err    error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func step(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{reason, err}
}

// reconcileLLM makes the children of one LLMInferenceService and writes its
// status. An error stands in the status and is retried.
func (c *Controller) reconcileLLM(ctx context.Context, namespace, name string) error {
	live, err := c.read(ctx, llmServices, namespace, name)
	if err != nil || live == nil {
		return err
	}
	if live, err = c.adopt(ctx, llmServices, live, llmisvc.Finalizer); err != nil || live == nil {
		return err
	}
	var last llmisvc.Status
	if err := object.Decode(live.Object["status"], &last); err != nil {
		return err
	}
	next, failure := c.applyLLM(ctx, live, last)
	if apierrors.IsAlreadyExists(failure) {
		// The cache lags behind a write of our own.
		return failure
	}
	if failure != nil {
		c.recorder.Eventf(live, "Warning", "Error", "Reconciliation failed: %v", failure)
	}
	c.tell(live, last.Conditions, next.Conditions)
	return errors.Join(failure, c.writeStatus(ctx, llmServices, live, &next))
}

func (c *Controller) applyLLM(ctx context.Context, live *unstructured.Unstructured, last llmisvc.Status) (llmisvc.Status, error) {
	merged, applied, err := c.combine(ctx, live)
	if err != nil {
		return llmisvc.FailedPresets(last, live.GetGeneration(), err.Error(), c.Now()), err
	}
	service, err := llmisvc.Parse(live, merged)
	if err != nil {
		return llmisvc.FailedPresets(last, live.GetGeneration(), err.Error(), c.Now()), err
	}
	last.AppliedConfigs = applied
	if service.Stopped() {
		return service.Halted(last, c.Now()), c.stopLLM(ctx, service)
	}
	seen := map[string]llmisvc.Observed{}
	for name, role := range map[string]llmisvc.Role{"main": service.Main(), "prefill": service.Prefill()} {
		seen[name] = llmisvc.Observed{Role: role}
	}
	failure := c.applyWorkloads(ctx, service, seen)
	if failure == nil {
		failure = c.applyScalers(ctx, service, seen)
	}
	var at *stepError
	if errors.As(failure, &at) {
		return service.Failed(last, at.reason, at.Error(), c.Now()), failure
	}
	next := service.Observe(last, seen["main"], seen["prefill"], c.Now())
	if router := service.Spec.Router; router != nil && (router.Gateway != nil || router.Route != nil) {
		// KServe says so in an event alone and leaves RouterReady True.
		c.recorder.Event(live, "Warning", "Error",
			`Reconciliation failed: no matches for kind "Gateway" in version "gateway.networking.k8s.io/v1"`)
	}
	return next, nil
}

// combine merges the presets and the bases of a service under its own spec.
func (c *Controller) combine(ctx context.Context, live *unstructured.Unstructured) (map[string]any, []llmisvc.AppliedConfig, error) {
	var specs []map[string]any
	var applied []llmisvc.AppliedConfig
	add := func(source, name string, namespaces ...string) error {
		for _, namespace := range namespaces {
			config, err := c.read(ctx, llmConfigs, namespace, name)
			if err != nil {
				return err
			}
			if config == nil {
				continue
			}
			spec, _, err := unstructured.NestedMap(config.Object, "spec")
			if err != nil {
				return fmt.Errorf("read LLMInferenceServiceConfig %s: %w", name, err)
			}
			specs = append(specs, spec)
			applied = append(applied, llmisvc.AppliedConfig{Name: name, Namespace: namespace, Source: source})
			return nil
		}
		return fmt.Errorf("read LLMInferenceServiceConfig %s: not found in namespaces %v", name, namespaces)
	}
	for _, name := range llmisvc.PresetsOf(live) {
		if err := add("Preset", name, c.Namespace); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range llmisvc.BaseRefs(live) {
		if err := add("UserRef", name, live.GetNamespace(), c.Namespace); err != nil {
			return nil, nil, err
		}
	}
	own, _, err := unstructured.NestedMap(live.Object, "spec")
	if err != nil {
		return nil, nil, fmt.Errorf("read spec: %w", err)
	}
	merged, err := llmisvc.Merge(append(specs, own)...)
	return merged, applied, err
}

func (c *Controller) applyWorkloads(ctx context.Context, service *llmisvc.Service, seen map[string]llmisvc.Observed) error {
	for name, part := range seen {
		reason := "ReconcileSingleNodeWorkloadError"
		if part.Role.MultiNode() {
			reason = "ReconcileMultiNodeWorkloadError"
		}
		if !part.Role.Exists() {
			if err := c.remove(ctx, deployments, service.Object, service.DeploymentName(part.Role)); err != nil {
				return step(reason, err)
			}
			continue
		}
		built, err := service.Deployment(part.Role)
		if err != nil {
			return step(reason, err)
		}
		wanted, err := object.FromTyped(built)
		if err != nil {
			return step(reason, err)
		}
		found, err := c.ensure(ctx, deployments, wanted, rules{keepReplicas: part.Role.Replicas() == nil, controlled: true})
		if err != nil {
			return step(reason, err)
		}
		if part.Deployment, err = asDeployment(found); err != nil {
			return step(reason, err)
		}
		seen[name] = part
	}
	wanted, err := object.FromTyped(service.Service())
	if err != nil {
		return step("ReconcileServiceError", err)
	}
	_, err = c.ensure(ctx, services, wanted, rules{controlled: true})
	return step("ReconcileServiceError", err)
}

// applyScalers makes the scalers of both roles, main first, and removes those
// that the service has no more use for.
func (c *Controller) applyScalers(ctx context.Context, service *llmisvc.Service, seen map[string]llmisvc.Observed) error {
	const reason = "ReconcileScalingError"
	for _, name := range []string{"main", "prefill"} {
		part := seen[name]
		var scaler, hpa *unstructured.Unstructured
		if part.Role.Exists() {
			var err error
			if scaler, err = service.ScaledObject(part.Role); err != nil {
				return step(reason, err)
			}
			if built := service.HPA(part.Role); built != nil {
				if hpa, err = object.FromTyped(built); err != nil {
					return step(reason, err)
				}
			}
		}
		found, err := c.scaler(ctx, service, scaler, hpa, part.Role)
		if err != nil {
			return step(reason, err)
		}
		part.Scaler = found
		seen[name] = part
	}
	return nil
}

// scaler ensures the one of a ScaledObject and an HPA that is not nil.
func (c *Controller) scaler(ctx context.Context, service *llmisvc.Service, scaler, hpa *unstructured.Unstructured, role llmisvc.Role) (*unstructured.Unstructured, error) {
	if scaler == nil {
		if err := c.remove(ctx, scaledObjects, service.Object, service.ScaledObjectName(role)); err != nil {
			return nil, err
		}
	}
	if hpa == nil {
		if err := c.remove(ctx, autoscalers, service.Object, service.HPAName(role)); err != nil {
			return nil, err
		}
	}
	switch {
	case scaler != nil:
		return c.ensure(ctx, scaledObjects, scaler, rules{controlled: true, exact: true, keepKEDA: true})
	case hpa != nil:
		return c.ensure(ctx, autoscalers, hpa, rules{controlled: true})
	default:
		return nil, nil
	}
}

func (c *Controller) stopLLM(ctx context.Context, service *llmisvc.Service) error {
	var failures []error
	for _, role := range []llmisvc.Role{service.Main(), service.Prefill()} {
		failures = append(failures,
			c.remove(ctx, scaledObjects, service.Object, service.ScaledObjectName(role)),
			c.remove(ctx, autoscalers, service.Object, service.HPAName(role)),
			c.remove(ctx, deployments, service.Object, service.DeploymentName(role)),
		)
	}
	return errors.Join(failures...)
}
