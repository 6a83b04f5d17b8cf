package bench

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/predictor"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// locate finds where the target answers and where its series are. Nothing of
// the cluster is read when --url says it all.
func (o *options) locate(ctx context.Context) (place, error) {
	if len(o.target) == 0 {
		at := place{url: o.url}
		if o.prometheus != "" && o.prometheus != prometheusNone {
			at.source = &source{url: o.prometheus}
		}
		return at, nil
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
	if at.source, err = o.source(ctx, client, at.scaler); err != nil {
		return place{}, err
	}
	if at.source == nil && o.prometheus != prometheusNone {
		o.streams.Warn("no ScaledObject of %s names a Prometheus: the server's own series will be missing; give --prometheus", workload)
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

// source is the Prometheus to ask: that of --prometheus, or of the target's own
// trigger. A server of the flag that is the trigger's gets what that shows.
func (o *options) source(ctx context.Context, client dynamic.Interface, found *scaler) (*source, error) {
	if o.prometheus == prometheusNone {
		return nil, nil
	}
	own, err := triggerSource(ctx, client, found)
	same := own != nil && strings.TrimSuffix(own.url, "/") == strings.TrimSuffix(o.prometheus, "/")
	if o.prometheus != "" && !same {
		return &source{url: o.prometheus}, nil
	}
	if err != nil || own == nil {
		return nil, err
	}
	if o.local && len(own.secrets)+len(own.configs) > 0 {
		o.streams.Warn("with --local the Secrets of %s are not read: the server's own series will be missing; give --prometheus", found)
		return nil, nil
	}
	if own.note != "" {
		o.streams.Warn("Prometheus: %s", own.note)
	}
	return own, nil
}
