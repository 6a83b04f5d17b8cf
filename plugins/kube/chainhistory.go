package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// FetchRelatedEvents adds the events of each chain's workload and, with scalers,
// of its ScaledObject.
func (f *Factory) FetchRelatedEvents(ctx context.Context, namespace string, fetched *FetchedChains, scalers bool) error {
	client, err := f.Dynamic()
	if err != nil {
		return err
	}
	reader := chainReader{client: client, mapper: f.Mapper, namespace: namespace}
	_, _, _, _, events := resources()
	for i := range fetched.Chains {
		link := &fetched.Chains[i]
		about := []chain.Ref{link.Target}
		if link.ScaledObject != nil && scalers {
			about = append(about, chain.RefOfScaledObject(*link.ScaledObject))
		}
		link.Related = nil
		for _, ref := range about {
			list, err := client.Resource(events).Namespace(namespace).List(ctx, metav1.ListOptions{
				FieldSelector: "involvedObject.kind=" + ref.Kind + ",involvedObject.name=" + ref.Name,
			})
			if err := reader.optional(err, "history", "events", "what happened is unknown"); err != nil {
				return err
			}
			if err != nil {
				break
			}
			fetched.Raw = append(fetched.Raw, list.Items...)
			for j := range list.Items {
				var event corev1.Event
				if convert(&list.Items[j], &event) == nil {
					link.Related = append(link.Related, event)
				}
			}
		}
	}
	// The refusal to list events is told once, by the chains themselves.
	if len(fetched.Unread) == 0 && len(reader.unread) > 0 {
		fetched.Unread = append(fetched.Unread, reader.unread[0])
	}
	return nil
}
