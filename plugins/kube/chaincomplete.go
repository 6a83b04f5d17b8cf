package kube

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// completeWithin bounds a completion: a shell waits for it.
const completeWithin = 2 * time.Second

// CompleteTargets returns what TYPE/NAME can begin with. It fails by returning
// less: a completion has nowhere to print an error.
func (f *Factory) CompleteTargets(ctx context.Context, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	prefix, name, slash := strings.Cut(typed, "/")
	if !slash {
		var types []string
		for _, kind := range chainKinds() {
			if strings.HasPrefix(kind.short[0], typed) {
				types = append(types, kind.short[0]+"/")
			}
		}
		return types
	}
	kind, known := kindOf(prefix)
	if !known {
		return nil
	}
	namespace, err := f.Namespace()
	if err != nil {
		return nil
	}
	config, err := f.RESTConfig()
	if err != nil {
		return nil
	}
	// Refused and deprecated things are told to nobody.
	config.WarningHandler = nil
	config.Timeout = completeWithin
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	var names []string
	var mutex sync.Mutex
	var lists sync.WaitGroup
	for _, version := range kind.versions() {
		lists.Go(func() {
			list, err := client.Resource(schema.GroupVersionResource{Group: kind.group, Version: version, Resource: kind.resource}).Namespace(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			for i := range list.Items {
				if strings.HasPrefix(list.Items[i].Name, name) {
					names = append(names, prefix+"/"+list.Items[i].Name)
				}
			}
		})
	}
	lists.Wait()
	slices.Sort(names)
	return slices.Compact(names)
}

// versions are those in which a kind may be served: discovery would cost a
// completion more than a request that is answered with "not found".
func (k chainKind) versions() []string {
	switch k.kind {
	case "InferenceService":
		return []string{"v1beta1"}
	case "LLMInferenceService":
		return []string{"v1alpha2", "v1alpha1"}
	case "ScaledObject":
		return []string{"v1alpha1"}
	case "HorizontalPodAutoscaler":
		return []string{"v2"}
	}
	return []string{"v1"}
}
