package kube

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// kedaNamespace is where KEDA looks for the Secrets of a
// ClusterTriggerAuthentication unless it was installed elsewhere.
const kedaNamespace = "keda"

// ServiceProxy returns an HTTP client of the API server, for the paths of its
// service proxy, and the server's base URL.
func (f *Factory) ServiceProxy() (*http.Client, string, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, "", err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, "", err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, "", err
	}
	return client, base.String(), nil
}

// TriggerParameters reads the parameters that a TriggerAuthentication (or a
// ClusterTriggerAuthentication) takes from Secrets and ConfigMaps. Errors name
// objects and permissions, never a value.
func (f *Factory) TriggerParameters(ctx context.Context, namespace, kind, name string) (map[string]string, error) {
	client, err := f.Dynamic()
	if err != nil {
		return nil, err
	}
	group := schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1"}
	var object *unstructured.Unstructured
	if kind == "ClusterTriggerAuthentication" {
		namespace = kedaNamespace
		object, err = client.Resource(group.GroupVersion().WithResource("clustertriggerauthentications")).Get(ctx, name, metav1.GetOptions{})
	} else {
		kind = "TriggerAuthentication"
		object, err = client.Resource(group.GroupVersion().WithResource("triggerauthentications")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("its %s %s cannot be read: %w", kind, name, reason(err))
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	for key := range spec {
		if !slices.Contains([]string{"secretTargetRef", "configMapTargetRef"}, key) {
			return nil, fmt.Errorf("its %s %s takes credentials from %s, which is not read here", kind, name, key)
		}
	}
	read := map[string]string{}
	for _, source := range []struct{ field, resource string }{{"secretTargetRef", "secrets"}, {"configMapTargetRef", "configmaps"}} {
		entries, _, _ := unstructured.NestedSlice(spec, source.field)
		if err := readParameters(ctx, client, namespace, source.resource, entries, read); err != nil {
			return nil, err
		}
	}
	return read, nil
}

func readParameters(ctx context.Context, client dynamic.Interface, namespace, resource string, entries []any, into map[string]string) error {
	objects := map[string]*unstructured.Unstructured{}
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		parameter, _, _ := unstructured.NestedString(fields, "parameter")
		name, _, _ := unstructured.NestedString(fields, "name")
		key, _, _ := unstructured.NestedString(fields, "key")
		if objects[name] == nil {
			object, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("cannot get %s %s in %s: %w", resource, name, namespace, reason(err))
			}
			objects[name] = object
		}
		value, found, _ := unstructured.NestedString(objects[name].Object, "data", key)
		if !found {
			return fmt.Errorf("%s %s in %s has no key %q", resource, name, namespace, key)
		}
		if resource == "secrets" {
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("%s %s in %s: key %q is not base64", resource, name, namespace, key)
			}
			value = string(decoded)
		}
		into[parameter] = value
	}
	return nil
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
