package kube

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// FetchedChains is what FetchChains read.
type FetchedChains struct {
	// Ref is the object that the target meant.
	Ref    chain.Ref
	Chains []chain.Chain
	// Unread lists the optional inputs that could not be read.
	Unread []record.UnreadInput
	// KubernetesVersion is "" where it could not be read.
	KubernetesVersion string
	// Leader is the HPA controller's Lease, nil unless FetchLeader read it.
	Leader *chain.Leader
	// Raw are all objects as they were read, those of other chains included.
	Raw []unstructured.Unstructured
}

// FetchChains reads the chains that target is a link of: the same few lists of
// one namespace whatever the target is, then the pods and the events of each.
func (f *Factory) FetchChains(ctx context.Context, namespace string, target Target) (*FetchedChains, error) {
	client, err := f.Dynamic()
	if err != nil {
		return nil, err
	}
	reader := chainReader{client: client, mapper: f.Mapper, namespace: namespace}
	ref := chain.Ref{Namespace: namespace, Name: target.Name}
	if target.Type != "" {
		if ref, err = refOf(target, namespace, f.Mapper); err != nil {
			return nil, err
		}
	}
	if err := reader.lists(ctx, ref); err != nil {
		return nil, err
	}
	found, ref, err := reader.find(ctx, target, ref)
	if err != nil {
		return nil, err
	}
	fetched := &FetchedChains{Ref: ref}
	for _, link := range found {
		complete, err := reader.complete(ctx, link)
		if err != nil {
			return nil, err
		}
		fetched.Chains = append(fetched.Chains, complete)
	}
	if err := reader.events(ctx, fetched.Chains); err != nil {
		return nil, err
	}
	reader.askOperator(ctx, fetched.Chains)
	if version, err := f.ServerVersion(); err == nil {
		fetched.KubernetesVersion = version
	} else {
		reader.unread = append(reader.unread, record.UnreadInput{
			Input: "version", Verb: "get", Resource: "/version",
			Message: "cannot get /version: the newest controller that is known is assumed",
		})
	}
	fetched.Unread, fetched.Raw = reader.unread, reader.raw
	return fetched, nil
}

type chainReader struct {
	client    dynamic.Interface
	mapper    func() (meta.RESTMapper, error)
	namespace string
	objects   chain.Objects
	unread    []record.UnreadInput
	raw       []unstructured.Unstructured
}

func resources() (scaledObjects, hpas, deployments, pods, events schema.GroupVersionResource) {
	return schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
		schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		schema.GroupVersionResource{Version: "v1", Resource: "events"}
}

// lists reads the scalers and the Deployments. HPAs are needed; without KEDA
// there are no ScaledObjects, which matters only where one was asked for.
func (r *chainReader) lists(ctx context.Context, ref chain.Ref) error {
	scaledObjects, hpas, deployments, _, _ := resources()
	if err := r.list(ctx, hpas, metav1.ListOptions{}); err != nil {
		return Explain(err, "list horizontalpodautoscalers in %s", r.namespace)
	}
	err := r.list(ctx, scaledObjects, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err) && ref.Kind == "ScaledObject":
		return failure.New(failure.NotFound, installHint("keda.sh"), "find scaledobject %s/%s: KEDA is not installed", r.namespace, ref.Name)
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err) && ref.Kind != "ScaledObject":
		r.miss("keda", "list", "scaledobjects.keda.sh", "triggers are shown as the HPA knows them")
	case err != nil:
		return Explain(err, "list scaledobjects in %s", r.namespace)
	}
	if err := r.list(ctx, deployments, metav1.ListOptions{}); err != nil {
		if !apierrors.IsForbidden(err) || ref.Kind == "Deployment" {
			return Explain(err, "list deployments in %s", r.namespace)
		}
		r.miss("workload", "list", "deployments.apps", "sizes are shown as the HPA last saw them")
	}
	return nil
}

func (r *chainReader) list(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions) error {
	list, err := r.client.Resource(resource).Namespace(r.namespace).List(ctx, options)
	if err != nil {
		return err
	}
	r.raw = append(r.raw, list.Items...)
	for i := range list.Items {
		if err := AddToChains(&r.objects, &list.Items[i]); err != nil {
			return failure.New(failure.Failed, "", "%w", err)
		}
	}
	return nil
}

func (r *chainReader) miss(input, verb, resource, consequence string) {
	r.unread = append(r.unread, record.UnreadInput{
		Input: input, Verb: verb, Resource: resource, Namespace: r.namespace,
		Message: "cannot " + verb + " " + resource + " in " + r.namespace + ": " + consequence,
	})
}

// find returns the chains of the target. A bare name means the first kind, from
// the root down, that has an object of that name.
func (r *chainReader) find(ctx context.Context, target Target, ref chain.Ref) ([]chain.Chain, chain.Ref, error) {
	if target.Type != "" {
		if found := r.objects.Find(ref); len(found) > 0 {
			return found, ref, nil
		}
		return r.fetchTarget(ctx, target, ref)
	}
	for _, kind := range chainKinds() {
		ref := chain.Ref{APIVersion: kind.group + "/", Kind: kind.kind, Namespace: r.namespace, Name: target.Name}
		if found := r.objects.Find(ref); len(found) > 0 {
			return found, ref, nil
		}
	}
	return nil, ref, failure.New(failure.NotFound,
		"say which kind you mean, such as isvc/"+target.Name+"; -n chooses the namespace: `kubectl get hpa -n "+r.namespace+"` lists what scales there",
		"find %s in %s: no inferenceservice, llminferenceservice, scaledobject, hpa or deployment of that name is part of a chain", target.Name, r.namespace)
}

// fetchTarget is for a target that the lists do not lead to: one that does not
// exist, one without a workload, or a scale target of another kind.
func (r *chainReader) fetchTarget(ctx context.Context, target Target, ref chain.Ref) ([]chain.Chain, chain.Ref, error) {
	act := strings.ToLower(ref.Kind) + " " + r.namespace + "/" + ref.Name
	object, err := r.get(ctx, ref)
	if err != nil {
		return nil, ref, Explain(err, "find %s", act)
	}
	r.raw = append(r.raw, *object)
	if err := AddToChains(&r.objects, object); err != nil {
		return nil, ref, failure.New(failure.Failed, "", "%w", err)
	}
	if found := r.objects.Find(ref); len(found) > 0 {
		return found, ref, nil
	}
	return nil, ref, failure.New(failure.NotFound, "`kubectl describe "+target.String()+" -n "+r.namespace+"` says how far its controller is",
		"explain %s: it owns no workload and no scaler", act)
}

// get reads an object of any kind; its version is the one the server prefers.
func (r *chainReader) get(ctx context.Context, ref chain.Ref) (*unstructured.Unstructured, error) {
	mapping, err := r.mapping(ref)
	if err != nil {
		return nil, err
	}
	return r.client.Resource(mapping.Resource).Namespace(r.namespace).Get(ctx, ref.Name, metav1.GetOptions{})
}

func (r *chainReader) mapping(ref chain.Ref) (*meta.RESTMapping, error) {
	mapper, err := r.mapper()
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(schema.GroupKind{Group: ref.Group(), Kind: ref.Kind})
}

// complete reads what the lists did not bring: a scale target that is no
// Deployment, and the pods.
func (r *chainReader) complete(ctx context.Context, link chain.Chain) (chain.Chain, error) {
	if link.Workload == nil {
		workload, err := r.scaleTarget(ctx, link.Target)
		switch {
		case apierrors.IsForbidden(err):
			// What may not be listed and not be got is one thing to ask for.
			if !slices.ContainsFunc(r.unread, func(u record.UnreadInput) bool { return u.Input == "workload" }) {
				r.miss("workload", "get", strings.ToLower(link.Target.Kind), "its sizes are shown as the HPA last saw them")
			}
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			// The HPA says so itself: FailedGetScale.
		case err != nil:
			return link, Explain(err, "get %s %s/%s", strings.ToLower(link.Target.Kind), r.namespace, link.Target.Name)
		default:
			r.unread = slices.DeleteFunc(r.unread, func(u record.UnreadInput) bool { return u.Input == "workload" && u.Verb == "list" })
			r.objects.Workloads = append(r.objects.Workloads, *workload)
			link = r.again(link)
		}
	}
	return link, r.pods(ctx, &link)
}

// optional lets a missing permission pass, noted, and puts any other error
// into words.
func (r *chainReader) optional(err error, input, resource, consequence string) error {
	if apierrors.IsForbidden(err) {
		r.miss(input, "list", resource, consequence)
		return nil
	}
	return Explain(err, "list %s in %s", resource, r.namespace)
}

// again joins the objects once more for a chain whose workload was read late.
func (r *chainReader) again(link chain.Chain) chain.Chain {
	all := r.objects.All()
	at := slices.IndexFunc(all, func(c chain.Chain) bool {
		return c.Target.Name == link.Target.Name && c.Target.Kind == link.Target.Kind
	})
	if at < 0 {
		return link
	}
	return all[at]
}

// scaleTarget reads a scale target with its scale subresource, which has the
// counts as the HPA sees them.
func (r *chainReader) scaleTarget(ctx context.Context, ref chain.Ref) (*chain.Workload, error) {
	mapping, err := r.mapping(ref)
	if err != nil {
		return nil, err
	}
	resource := r.client.Resource(mapping.Resource).Namespace(r.namespace)
	object, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	r.raw = append(r.raw, *object)
	workload := WorkloadOf(object)
	if ref.Kind == "Deployment" {
		return &workload, nil
	}
	scale, err := resource.Get(ctx, ref.Name, metav1.GetOptions{}, "scale")
	if err != nil {
		return nil, err
	}
	workload.Spec, workload.Status = number(scale, "spec", "replicas"), number(scale, "status", "replicas")
	workload.Selector, _, _ = unstructured.NestedString(scale.Object, "status", "selector")
	return &workload, nil
}
