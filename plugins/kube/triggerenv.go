package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func keysOf(fields map[string]any) iter.Seq[string] { return maps.Keys(fields) }

// fromEnv reads the parameters that are environment variables of the scale
// target's containers: of the first one unless another is named.
func (a *TriggerAuth) fromEnv(ctx context.Context, spec map[string]any, into map[string]string) error {
	entries, _, _ := unstructured.NestedSlice(spec, "env")
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		parameter, _, _ := unstructured.NestedString(fields, "parameter")
		name, _, _ := unstructured.NestedString(fields, "name")
		containerName, _, _ := unstructured.NestedString(fields, "containerName")
		container, err := a.container(containerName)
		if err != nil {
			return err
		}
		if into[parameter], err = a.variable(ctx, *container, name); err != nil {
			return err
		}
	}
	return nil
}

func (a *TriggerAuth) container(name string) (*corev1.Container, error) {
	if a.workload == nil {
		return nil, errors.New("it takes credentials from the environment of the workload, which could not be read")
	}
	template, _, _ := unstructured.NestedMap(a.workload.Object, "spec", "template")
	var pod corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil || len(pod.Spec.Containers) == 0 {
		return nil, errors.New("it takes credentials from the environment of the workload, which has no pod template")
	}
	if name == "" {
		return &pod.Spec.Containers[0], nil
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i], nil
		}
	}
	return nil, fmt.Errorf("it takes credentials from container %s, which the workload does not have", name)
}

// variable is a container's variable: env goes before envFrom, and of each the
// later one counts.
func (a *TriggerAuth) variable(ctx context.Context, container corev1.Container, name string) (string, error) {
	for i := len(container.Env) - 1; i >= 0; i-- {
		variable := container.Env[i]
		if variable.Name != name {
			continue
		}
		from := variable.ValueFrom
		switch {
		case from == nil:
			return variable.Value, nil
		case from.SecretKeyRef != nil:
			return a.value(ctx, "secrets", a.namespace, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		case from.ConfigMapKeyRef != nil:
			return a.value(ctx, "configmaps", a.namespace, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)
		}
		return "", fmt.Errorf("its variable %s of container %s is known in a pod only", name, container.Name)
	}
	var last error
	for i := len(container.EnvFrom) - 1; i >= 0; i-- {
		from := container.EnvFrom[i]
		resource, object := "", ""
		switch {
		case from.SecretRef != nil:
			resource, object = "secrets", from.SecretRef.Name
		case from.ConfigMapRef != nil:
			resource, object = "configmaps", from.ConfigMapRef.Name
		default:
			continue
		}
		value, err := a.value(ctx, resource, a.namespace, object, name)
		if err == nil {
			return value, nil
		}
		last = err
	}
	if last != nil {
		return "", last
	}
	return "", fmt.Errorf("container %s of the workload has no variable %s", container.Name, name)
}
