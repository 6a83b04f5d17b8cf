package kube

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// rewatch is the wait before a watch that ended is opened again.
const rewatch = 2 * time.Second

// WatchChains signals each time that a ScaledObject, an HPA or a Deployment of
// the chains changes, once for what changed together. A watch that is refused
// or breaks is opened again; the caller looks now and then by itself too. Call
// wait after ctx is done.
func (f *Factory) WatchChains(ctx context.Context, chains []chain.Chain) (changes <-chan struct{}, wait func(), err error) {
	client, err := f.Dynamic()
	if err != nil {
		return nil, nil, err
	}
	scaledObjects, hpas, deployments, _, _ := resources()
	signal := make(chan struct{}, 1)
	var watches sync.WaitGroup
	start := func(resource schema.GroupVersionResource, namespace, name string) {
		watches.Go(func() { watchObject(ctx, client.Resource(resource).Namespace(namespace), name, signal) })
	}
	for _, link := range chains {
		namespace := link.Target.Namespace
		if link.ScaledObject != nil {
			start(scaledObjects, namespace, link.ScaledObject.Metadata.Name)
			start(hpas, namespace, link.ScaledObject.HPAName())
		} else if link.HPA != nil {
			start(hpas, namespace, link.HPA.Name)
		}
		if link.Target.Kind == "Deployment" {
			start(deployments, namespace, link.Target.Name)
		}
	}
	return signal, watches.Wait, nil
}

func watchObject(ctx context.Context, resource dynamic.ResourceInterface, name string, signal chan<- struct{}) {
	for ctx.Err() == nil {
		watcher, err := resource.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil {
			for range watcher.ResultChan() {
				select {
				case signal <- struct{}{}:
				default:
				}
			}
			watcher.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatch):
		}
	}
}
