package kube

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kedaNamespace is where KEDA is installed unless somebody chose otherwise.
const kedaNamespace = "keda"

// Home is the namespace in which KEDA runs, and how that was found out.
type Home struct {
	Namespace string
	// Known is false where it is assumed.
	Known bool
	how   string
}

// said follows an error about an object in KEDA's namespace.
func (h Home) said() string { return " (" + h.how + ")" }

// Home finds KEDA's namespace with one request: the external metrics API names
// its service. On OpenShift it is openshift-keda.
func (a *TriggerAuth) Home(ctx context.Context) Home {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.homeOf(ctx)
}

func (a *TriggerAuth) homeOf(ctx context.Context) Home {
	if a.home == nil {
		home := a.findHome(ctx)
		a.home = &home
	}
	return *a.home
}

func (a *TriggerAuth) findHome(ctx context.Context) Home {
	const name = "v1beta1.external.metrics.k8s.io"
	service, err := a.get(ctx, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, "", name)
	assumed := func(why string) Home {
		return Home{Namespace: kedaNamespace, how: "KEDA's namespace is assumed to be " + kedaNamespace + ": " + why}
	}
	if err != nil {
		return assumed(fmt.Sprintf("apiservice %s %s", name, reason(err)))
	}
	namespace, _, _ := unstructured.NestedString(service.Object, "spec", "service", "namespace")
	server, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
	if namespace == "" || !strings.Contains(server, "keda") {
		return assumed(fmt.Sprintf("apiservice %s belongs to %q", name, namespace+"/"+server))
	}
	return Home{Namespace: namespace, Known: true, how: "KEDA's namespace by apiservice " + name + "; its KEDA_CLUSTER_OBJECT_NAMESPACE may name another"}
}
