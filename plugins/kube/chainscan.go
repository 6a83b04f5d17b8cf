package kube

import (
	"context"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// scannedKinds bounds the kinds of scale targets, apart from Deployments, that
// a scan lists: each is one more request.
const scannedKinds = 6

// FetchAllChains reads every chain of a namespace, "" for all namespaces, with
// one list a kind, however many objects there are: the lists are answered from
// the API server's cache. Workloads that nothing scales are left out.
func (f *Factory) FetchAllChains(ctx context.Context, namespace string) (*FetchedChains, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	// Thousands of pods decode in a tenth of the time that JSON takes.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, failure.New(failure.Failed, "", "make client: %w", err)
	}
	client, err := f.Dynamic()
	if err != nil {
		return nil, err
	}
	s := scanReader{chainReader: chainReader{client: client, mapper: f.Mapper, namespace: namespace}, typed: typed}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	fetched := &FetchedChains{Chains: s.join()}
	if slices.ContainsFunc(fetched.Chains, func(c chain.Chain) bool { return c.HPA != nil && countsPods(c) }) {
		if err := s.readPods(ctx); err != nil {
			return nil, err
		}
		fetched.Chains = s.join()
	}
	if version, err := f.ServerVersion(); err == nil {
		fetched.KubernetesVersion = version
	}
	fetched.Unread = s.unread
	return fetched, nil
}

type scanReader struct {
	chainReader
	typed kubernetes.Interface
}

// fromCache lets the API server answer from its memory.
func fromCache() metav1.ListOptions { return metav1.ListOptions{ResourceVersion: "0"} }

// scope names the namespace in a sentence.
func scope(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return namespace
}

func (s *scanReader) read(ctx context.Context) error {
	var lists sync.WaitGroup
	var hpaErr, soErr, deploymentErr, eventErr error
	var events *corev1.EventList
	var deployments *appsv1.DeploymentList
	var scaledObjects *unstructured.UnstructuredList
	lists.Go(func() {
		list, err := s.typed.AutoscalingV2().HorizontalPodAutoscalers(s.namespace).List(ctx, fromCache())
		if hpaErr = err; err == nil {
			s.objects.HPAs = list.Items
		}
	})
	lists.Go(func() {
		resource, _, _, _, _ := resources()
		scaledObjects, soErr = s.client.Resource(resource).Namespace(s.namespace).List(ctx, fromCache())
	})
	lists.Go(func() {
		deployments, deploymentErr = s.typed.AppsV1().Deployments(s.namespace).List(ctx, fromCache())
	})
	lists.Go(func() {
		options := fromCache()
		options.FieldSelector = "involvedObject.kind=HorizontalPodAutoscaler"
		events, eventErr = s.typed.CoreV1().Events(s.namespace).List(ctx, options)
	})
	lists.Wait()
	if hpaErr != nil {
		return Explain(hpaErr, "list horizontalpodautoscalers in %s", scope(s.namespace))
	}
	switch {
	case apierrors.IsNotFound(soErr):
	case apierrors.IsForbidden(soErr):
		s.missIn("keda", "list", "scaledobjects.keda.sh", "triggers are shown as the HPAs know them")
	case soErr != nil:
		return Explain(soErr, "list scaledobjects in %s", scope(s.namespace))
	default:
		for i := range scaledObjects.Items {
			if err := AddToChains(&s.objects, &scaledObjects.Items[i]); err != nil {
				return failure.New(failure.Failed, "", "%w", err)
			}
		}
	}
	if err := s.optionalIn(deploymentErr, "workload", "deployments.apps", "sizes are shown as the HPAs last saw them"); err != nil {
		return err
	}
	if deploymentErr == nil {
		for i := range deployments.Items {
			s.objects.Workloads = append(s.objects.Workloads, workloadOfDeployment(&deployments.Items[i]))
		}
	}
	if err := s.optionalIn(eventErr, "events", "events", "the HPAs' own recent rescales are unknown"); err != nil {
		return err
	}
	if eventErr == nil {
		s.objects.Events = append([]corev1.Event{}, events.Items...)
	}
	return s.readOtherTargets(ctx)
}

// readOtherTargets lists the other kinds that are scaled, such as StatefulSets.
func (s *scanReader) readOtherTargets(ctx context.Context) error {
	seen := map[string]bool{"Deployment": true}
	for _, link := range s.join() {
		ref := link.Target
		if seen[ref.Kind] || len(seen) > scannedKinds {
			continue
		}
		seen[ref.Kind] = true
		mapping, err := s.mapping(ref)
		if err != nil {
			// The HPA's own condition says that the kind is not known.
			continue
		}
		list, err := s.client.Resource(mapping.Resource).Namespace(s.namespace).List(ctx, fromCache())
		if err := s.optionalIn(err, "workload", mapping.Resource.GroupResource().String(), "sizes are shown as the HPAs last saw them"); err != nil {
			return err
		}
		if err != nil {
			continue
		}
		for i := range list.Items {
			s.objects.Workloads = append(s.objects.Workloads, WorkloadOf(&list.Items[i]))
		}
	}
	return nil
}

func (s *scanReader) readPods(ctx context.Context) error {
	pods, err := s.typed.CoreV1().Pods(s.namespace).List(ctx, fromCache())
	if err := s.optionalIn(err, "pods", "pods", "how many pods are Ready is unknown"); err != nil {
		return err
	}
	if err == nil {
		s.objects.Pods = append([]corev1.Pod{}, pods.Items...)
	}
	return nil
}

// join joins the objects of each namespace for itself: names repeat.
func (s *scanReader) join() []chain.Chain {
	var scaled []chain.Chain
	for _, objects := range s.objects.ByNamespace() {
		for _, link := range objects.All() {
			if link.HPA != nil || link.ScaledObject != nil {
				scaled = append(scaled, link)
			}
		}
	}
	return scaled
}

func (s *scanReader) missIn(input, verb, resource, consequence string) {
	s.miss(input, verb, resource, consequence)
	last := &s.unread[len(s.unread)-1]
	last.Message = "cannot " + verb + " " + resource + " in " + scope(s.namespace) + ": " + consequence
}

func (s *scanReader) optionalIn(err error, input, resource, consequence string) error {
	if apierrors.IsForbidden(err) {
		s.missIn(input, "list", resource, consequence)
		return nil
	}
	return Explain(err, "list %s in %s", resource, scope(s.namespace))
}

func workloadOfDeployment(d *appsv1.Deployment) chain.Workload {
	workload := chain.Workload{
		Owned:  chain.Owned{Ref: chain.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name, UID: string(d.UID)}},
		Status: d.Status.Replicas,
		Writer: replicasWriter(d.ManagedFields),
	}
	if d.Spec.Replicas != nil {
		workload.Spec = *d.Spec.Replicas
	}
	if role := d.Labels["llm-d.ai/role"]; role == "decode" || role == "prefill" {
		workload.Role = role
	}
	if d.Spec.Selector != nil {
		workload.Selector = metav1.FormatLabelSelector(d.Spec.Selector)
	}
	workload.Ready = new(d.Status.ReadyReplicas)
	if owner := metav1.GetControllerOfNoCopy(d); owner != nil {
		workload.Controller = &chain.Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: d.Namespace, Name: owner.Name, UID: string(owner.UID)}
	}
	return workload
}

// ShortType is how a kind is typed on the command line.
func ShortType(kind string) string {
	for _, known := range chainKinds() {
		if known.kind == kind {
			return known.short[0]
		}
	}
	return strings.ToLower(kind)
}

// countsPods says whether a metric of the HPA depends on the pods: on how many
// are Ready, or on which have samples.
func countsPods(link chain.Chain) bool {
	for _, metric := range link.HPA.Spec.Metrics {
		averaged := (metric.External != nil && metric.External.Target.AverageValue != nil) || (metric.Object != nil && metric.Object.Target.AverageValue != nil)
		if !averaged {
			return true
		}
	}
	return false
}
