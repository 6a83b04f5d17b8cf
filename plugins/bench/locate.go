package bench

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/predictor"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// locate finds where the target answers and where its series are. Nothing of
// the cluster is read when --url says it all.
func (o *options) locate(ctx context.Context) (place, error) {
	if len(o.target) == 0 {
		return place{url: o.url, prometheus: o.prometheus}, nil
	}
	namespace, err := o.factory.Namespace()
	if err != nil {
		return place{}, err
	}
	object, err := o.object(namespace)
	if err != nil {
		return place{}, err
	}
	at, workload, err := placeOf(object)
	if err != nil {
		return place{}, err
	}
	if o.url != "" {
		at.url = o.url
	}
	client, err := o.factory.Dynamic()
	if err != nil {
		return place{}, err
	}
	if at.scaler, at.unread, err = scalerOf(ctx, client, namespace, workload); err != nil {
		return place{}, err
	}
	at.prometheus = o.prometheus
	if at.prometheus == "" {
		if at.prometheus, err = o.triggersServer(ctx, namespace, workload); err != nil {
			return place{}, err
		}
		if at.prometheus == "" {
			o.streams.Warn("no ScaledObject of %s names a Prometheus: the server's own series will be missing; give --prometheus", workload)
		}
	}
	return at, nil
}

// object gets the target with kubectl's own rules for types and short names.
func (o *options) object(namespace string) (*unstructured.Unstructured, error) {
	infos, err := resource.NewBuilder(o.factory.Getter()).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, o.target...).SingleResourceType().Latest().Flatten().Do().Infos()
	target := strings.Join(o.target, " ")
	switch {
	case err != nil && strings.Contains(err.Error(), "the server doesn't have a resource type"):
		return nil, failure.New(failure.NotFound, "give TYPE/NAME, such as isvc/NAME or svc/NAME; is KServe installed?", "find %s: %w", target, err)
	case err != nil && strings.Contains(err.Error(), "resource(s) were provided, but no name"):
		return nil, failure.New(failure.Usage, "give TYPE/NAME, such as isvc/NAME or svc/NAME", "find %s: no name given", target)
	case err != nil:
		return nil, kube.Explain(err, "find %s in namespace %s", target, namespace)
	case len(infos) != 1:
		return nil, failure.New(failure.Usage, "", "find %s: one target is measured at a time", target)
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("find %s: unexpected kind of object", target)
	}
	return object, nil
}

// placeOf says where an object answers, and the name of the workload behind it.
func placeOf(object *unstructured.Unstructured) (place, string, error) {
	name, namespace := object.GetName(), object.GetNamespace()
	quoted := regexp.QuoteMeta(name)
	switch object.GetKind() {
	case predictor.KindInferenceService:
		return place{url: predictor.URL(predictor.KindInferenceService, name, namespace), namespace: namespace, podRegex: quoted + "-predictor-.*"}, name + "-predictor", nil
	case "LLMInferenceService":
		// Two name parts: the ReplicaSet's and the pod's. Prefill pods have more.
		return place{url: fmt.Sprintf("http://%s-kserve-workload-svc.%s.svc:8000", name, namespace), namespace: namespace, podRegex: quoted + "-kserve-[^-]+-[^-]+"}, name + "-kserve", nil
	case "Service":
		ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
		if len(ports) == 0 {
			return place{}, "", failure.New(failure.Usage, "give --url", "find service %s: it has no port", name)
		}
		first, _ := ports[0].(map[string]any)
		workload := strings.TrimSuffix(name, "-predictor")
		return place{url: fmt.Sprintf("http://%s.%s.svc:%v", name, namespace, first["port"]), namespace: namespace, podRegex: regexp.QuoteMeta(workload) + "-.*"}, name, nil
	case predictor.KindDeployment:
		return place{url: predictor.URL(predictor.KindDeployment, name, namespace), namespace: namespace, podRegex: quoted + "-[^-]+-[^-]+"}, name, nil
	}
	return place{}, "", failure.New(failure.Usage, "give isvc/NAME, llmisvc/NAME, deploy/NAME or svc/NAME, or --url", "measure %s %s: it does not answer requests", object.GetKind(), name)
}

// triggersServer returns the Prometheus that the workload's own scaler asks, ""
// where there is none or it may not be read.
func (o *options) triggersServer(ctx context.Context, namespace, workload string) (string, error) {
	client, err := o.factory.Dynamic()
	if err != nil {
		return "", err
	}
	scalers, err := client.Resource(schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}).
		Namespace(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", kube.Explain(err, "list scaledobjects in %s", namespace)
	}
	for _, scaler := range scalers.Items {
		if target, _, _ := unstructured.NestedString(scaler.Object, "spec", "scaleTargetRef", "name"); target != workload {
			continue
		}
		triggers, _, _ := unstructured.NestedSlice(scaler.Object, "spec", "triggers")
		for _, entry := range triggers {
			trigger, _ := entry.(map[string]any)
			if server, _, _ := unstructured.NestedString(trigger, "metadata", "serverAddress"); trigger["type"] == "prometheus" && server != "" {
				return server, nil
			}
		}
	}
	return "", nil
}
