package kube

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// TriggerAuth reads what the authenticationRefs of one workload's triggers
// resolve to. Each object is read once. Errors name objects and permissions,
// never a value.
type TriggerAuth struct {
	client    dynamic.Interface
	namespace string
	// workload is the scale target, of which env takes its variables; nil where
	// it could not be read.
	workload *unstructured.Unstructured

	mutex sync.Mutex
	read  map[string]readObject
	home  *Home
}

type readObject struct {
	object *unstructured.Unstructured
	err    error
}

// TriggerAuth makes a reader for the triggers of a workload in a namespace.
func (f *Factory) TriggerAuth(namespace string, workload *unstructured.Unstructured) (*TriggerAuth, error) {
	client, err := f.Dynamic()
	if err != nil {
		return nil, err
	}
	return &TriggerAuth{client: client, namespace: namespace, workload: workload, read: map[string]readObject{}}, nil
}

// Credentials resolves a TriggerAuthentication, or a
// ClusterTriggerAuthentication, whose Secrets lie in KEDA's own namespace.
func (a *TriggerAuth) Credentials(ctx context.Context, kind, name string) (keda.Credentials, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	namespace, resource := a.namespace, "triggerauthentications"
	cluster := kind == "ClusterTriggerAuthentication"
	if cluster {
		namespace, resource = "", "clustertriggerauthentications"
	} else {
		kind = "TriggerAuthentication"
	}
	object, err := a.get(ctx, schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: resource}, namespace, name)
	if err != nil {
		return keda.Credentials{}, fmt.Errorf("its %s %s cannot be read: %w", kind, name, needs(err, "get "+resource+".keda.sh", namespace))
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	for _, key := range slices.Sorted(keysOf(spec)) {
		if !slices.Contains([]string{"secretTargetRef", "configMapTargetRef", "env", "podIdentity"}, key) {
			return keda.Credentials{}, fmt.Errorf("its %s %s takes credentials from %s, which is not read here", kind, name, key)
		}
	}
	given := keda.Credentials{Parameters: map[string]string{}}
	given.PodIdentity, _, _ = unstructured.NestedString(spec, "podIdentity", "provider")
	if err := a.fromEnv(ctx, spec, given.Parameters); err != nil {
		return keda.Credentials{}, err
	}
	for _, source := range []struct{ field, resource string }{{"configMapTargetRef", "configmaps"}, {"secretTargetRef", "secrets"}} {
		entries, _, _ := unstructured.NestedSlice(spec, source.field)
		for _, entry := range entries {
			if err := a.fromObject(ctx, source.resource, cluster, entry, given.Parameters); err != nil {
				return keda.Credentials{}, err
			}
		}
	}
	return given, nil
}

// fromObject reads one parameter of a Secret or a ConfigMap.
func (a *TriggerAuth) fromObject(ctx context.Context, resource string, cluster bool, entry any, into map[string]string) error {
	fields, _ := entry.(map[string]any)
	parameter, _, _ := unstructured.NestedString(fields, "parameter")
	name, _, _ := unstructured.NestedString(fields, "name")
	key, _, _ := unstructured.NestedString(fields, "key")
	namespace, where := a.namespace, ""
	if cluster {
		home := a.homeOf(ctx)
		namespace, where = home.Namespace, home.said()
	}
	value, err := a.value(ctx, resource, namespace, name, key)
	if err != nil {
		return fmt.Errorf("%w%s", err, where)
	}
	into[parameter] = value
	return nil
}

// value reads one key of a Secret or a ConfigMap.
func (a *TriggerAuth) value(ctx context.Context, resource, namespace, name, key string) (string, error) {
	object, err := a.get(ctx, schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace, name)
	if err != nil {
		return "", fmt.Errorf("cannot get %s %s in %s: %w", resource, name, namespace, reason(err))
	}
	value, found, _ := unstructured.NestedString(object.Object, "data", key)
	if !found {
		return "", fmt.Errorf("%s %s in %s has no key %q", resource, name, namespace, key)
	}
	if resource != "secrets" {
		return value, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return "", fmt.Errorf("%s %s in %s: key %q is not base64", resource, name, namespace, key)
	}
	return string(decoded), nil
}

// get reads an object once.
func (a *TriggerAuth) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	key := strings.Join([]string{resource.String(), namespace, name}, " ")
	if known, done := a.read[key]; done {
		return known.object, known.err
	}
	object, err := a.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	a.read[key] = readObject{object, err}
	return object, err
}

// needs says which right a refusal asks for.
func needs(err error, verb, namespace string) error {
	if !apierrors.IsForbidden(err) {
		return reason(err)
	}
	if namespace == "" {
		return fmt.Errorf("not permitted to %s", verb)
	}
	return fmt.Errorf("not permitted to %s in %s", verb, namespace)
}

// reason is an API error in two words.
func reason(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return errors.New("not permitted")
	case apierrors.IsNotFound(err):
		return errors.New("not found")
	}
	return short(err)
}
