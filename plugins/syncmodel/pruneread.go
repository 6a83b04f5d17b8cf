package syncmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/references"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// holders are the kinds that can refer to a model in a bucket, with those that
// hold a Deployment's and a StatefulSet's former states: they are what
// `kubectl rollout undo` goes back to.
var holders = []schema.GroupKind{
	{Kind: "PersistentVolume"}, {Kind: "PersistentVolumeClaim"}, {Kind: "Pod"}, {Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "ReplicationController"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "ControllerRevision"},
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
	{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"},
	{Group: "serving.kserve.io", Kind: "InferenceService"}, {Group: "serving.kserve.io", Kind: "LLMInferenceService"},
	{Group: "serving.kserve.io", Kind: "LLMInferenceServiceConfig"}, {Group: "serving.kserve.io", Kind: "ServingRuntime"},
	{Group: "serving.kserve.io", Kind: "ClusterServingRuntime"}, {Group: "serving.kserve.io", Kind: "LocalModelCache"},
}

// page is how many objects a list asks for at once.
const page = 500

// collectReferences searches the cluster for references into a bucket. unread
// names what the user may not read.
func collectReferences(ctx context.Context, factory *kube.Factory, bucket string) (found []record.Reference, unread []string, err error) {
	client, err := factory.Dynamic()
	if err != nil {
		return nil, nil, err
	}
	mapper, err := factory.Mapper()
	if err != nil {
		return nil, nil, err
	}
	found, unread = []record.Reference{}, []string{}
	seen := make(map[record.Reference]bool)
	for _, kind := range holders {
		mapping, err := mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, nil, kube.Explain(err, "search the cluster for uses of %s: find %s", bucket, kind.Kind)
		}
		objects := func(object map[string]any) {
			for _, reference := range references.Find(object, bucket) {
				if !seen[reference] {
					seen[reference] = true
					found = append(found, reference)
				}
			}
		}
		resource := client.Resource(mapping.Resource)
		lacking, err := readAll(ctx, client, resource, mapping, objects)
		if err != nil {
			return nil, nil, kube.Explain(err, "search the cluster for uses of %s: list %s", bucket, mapping.Resource.Resource)
		}
		unread = append(unread, lacking...)
	}
	slices.SortFunc(found, func(a, b record.Reference) int {
		return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Prefix, b.Prefix), cmp.Compare(a.Revision, b.Revision))
	})
	return found, unread, nil
}

// readAll reads all objects of a kind, in all namespaces at once or, where that
// is not allowed, in each.
func readAll(ctx context.Context, client dynamic.Interface, resource dynamic.NamespaceableResourceInterface, mapping *meta.RESTMapping, each func(map[string]any)) (unread []string, err error) {
	name := mapping.Resource.Resource
	err = list(ctx, resource, each)
	if !apierrors.IsForbidden(err) {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return []string{name}, nil
	}
	namespaces := []string{}
	err = list(ctx, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}), func(object map[string]any) {
		metadata, _ := object["metadata"].(map[string]any)
		namespace, _ := metadata["name"].(string)
		namespaces = append(namespaces, namespace)
	})
	if apierrors.IsForbidden(err) {
		return []string{name + " of all namespaces"}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		switch err := list(ctx, resource.Namespace(namespace), each); {
		case apierrors.IsForbidden(err):
			unread = append(unread, fmt.Sprintf("%s of namespace %s", name, namespace))
		case err != nil:
			return nil, err
		}
	}
	return unread, nil
}

func list(ctx context.Context, resource dynamic.ResourceInterface, each func(map[string]any)) error {
	options := metav1.ListOptions{Limit: page}
	for {
		objects, err := resource.List(ctx, options)
		if err != nil {
			return err
		}
		for _, object := range objects.Items {
			if object.GetKind() == "" {
				object.SetKind(objects.GetKind()[:max(0, len(objects.GetKind())-len("List"))])
			}
			each(object.Object)
		}
		if options.Continue = objects.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
