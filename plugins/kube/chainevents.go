package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// pods reads those of a workload. Nil stays nil where its selector is not known.
func (r *chainReader) pods(ctx context.Context, link *chain.Chain) error {
	if link.Workload == nil || link.Workload.Selector == "" {
		return nil
	}
	_, _, _, pods, _ := resources()
	list, err := r.client.Resource(pods).Namespace(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: link.Workload.Selector})
	if err != nil {
		return r.optional(err, "pods", "pods", "how many pods are Ready is unknown")
	}
	r.raw = append(r.raw, list.Items...)
	link.Pods = []corev1.Pod{}
	for i := range list.Items {
		var pod corev1.Pod
		if convert(&list.Items[i], &pod) == nil {
			link.Pods = append(link.Pods, pod)
		}
	}
	return nil
}

// aboutChains are the events of a namespace that may be about a link of a chain:
// those of pods are by far the most.
const aboutChains = "involvedObject.kind!=Pod,involvedObject.kind!=ReplicaSet,involvedObject.kind!=Job,involvedObject.kind!=Node"

// events reads what the HPA, KEDA and the workload's controller did. Of one
// chain it asks for each object's own; of several for all at once, so that the
// number of requests does not grow with them.
func (r *chainReader) events(ctx context.Context, chains []chain.Chain) error {
	_, _, _, _, events := resources()
	var selectors []string
	for i := range chains {
		for _, ref := range eventful(chains[i]) {
			selectors = append(selectors, "involvedObject.kind="+ref.Kind+",involvedObject.name="+ref.Name)
		}
	}
	if len(chains) > 1 {
		selectors = []string{aboutChains}
	}
	var read chain.Objects
	for _, selector := range selectors {
		list, err := r.client.Resource(events).Namespace(r.namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return r.optional(err, "events", "events", "the HPA's own recent rescales are unknown")
		}
		for i := range list.Items {
			var event corev1.Event
			if convert(&list.Items[i], &event) == nil && isAbout(event, chains) {
				r.raw = append(r.raw, list.Items[i])
				read.Events = append(read.Events, event)
			}
		}
	}
	for i := range chains {
		chains[i].AddEvents(append([]corev1.Event{}, read.Events...))
	}
	return nil
}

// eventful are the links of a chain whose events tell of its size. A workload
// that is no Deployment has none about it.
func eventful(link chain.Chain) []chain.Ref {
	var refs []chain.Ref
	if link.HPA != nil {
		refs = append(refs, chain.RefOfHPA(link.HPA))
	}
	if link.ScaledObject != nil {
		refs = append(refs, chain.RefOfScaledObject(*link.ScaledObject))
	}
	if link.Target.Kind == "Deployment" {
		refs = append(refs, link.Target)
	}
	return refs
}

func isAbout(event corev1.Event, chains []chain.Chain) bool {
	for i := range chains {
		for _, ref := range eventful(chains[i]) {
			if event.InvolvedObject.Kind == ref.Kind && event.InvolvedObject.Name == ref.Name {
				return true
			}
		}
	}
	return false
}
