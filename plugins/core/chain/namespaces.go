package chain

import (
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// In returns the objects of one namespace, with those that name none.
func (o Objects) In(namespace string) Objects {
	within := func(other string) bool { return inOne(namespace, other) }
	o.Owners = kept(o.Owners, func(x Owned) bool { return within(x.Namespace) })
	o.ScaledObjects = kept(o.ScaledObjects, func(x keda.ScaledObject) bool { return within(x.Metadata.Namespace) })
	o.HPAs = kept(o.HPAs, func(x autoscalingv2.HorizontalPodAutoscaler) bool { return within(x.Namespace) })
	o.Workloads = kept(o.Workloads, func(x Workload) bool { return within(x.Namespace) })
	o.Pods = kept(o.Pods, func(x corev1.Pod) bool { return within(x.Namespace) })
	o.Events = kept(o.Events, func(x corev1.Event) bool { return within(x.Namespace) })
	return o
}

// kept is a new slice of what keep takes; nil stays nil.
func kept[T any](all []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !keep(x) })
}

// Namespaces are those of the scalers and the workloads, in order.
func (o Objects) Namespaces() []string {
	var names []string
	for _, link := range o.All() {
		names = append(names, link.Target.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ByNamespace parts the objects by namespace, in the order of their names. A
// nil slice of Pods or Events stays nil in each part.
func (o Objects) ByNamespace() []Objects {
	parts := map[string]*Objects{}
	in := func(namespace string) *Objects {
		part, found := parts[namespace]
		if !found {
			part = &Objects{}
			if o.Pods != nil {
				part.Pods = o.Pods[:0:0]
			}
			if o.Events != nil {
				part.Events = o.Events[:0:0]
			}
			parts[namespace] = part
		}
		return part
	}
	for i := range o.Owners {
		part := in(o.Owners[i].Namespace)
		part.Owners = append(part.Owners, o.Owners[i])
	}
	for i := range o.ScaledObjects {
		part := in(o.ScaledObjects[i].Metadata.Namespace)
		part.ScaledObjects = append(part.ScaledObjects, o.ScaledObjects[i])
	}
	for i := range o.HPAs {
		part := in(o.HPAs[i].Namespace)
		part.HPAs = append(part.HPAs, o.HPAs[i])
	}
	for i := range o.Workloads {
		part := in(o.Workloads[i].Namespace)
		part.Workloads = append(part.Workloads, o.Workloads[i])
	}
	for i := range o.Pods {
		part := in(o.Pods[i].Namespace)
		part.Pods = append(part.Pods, o.Pods[i])
	}
	for i := range o.Events {
		part := in(o.Events[i].Namespace)
		part.Events = append(part.Events, o.Events[i])
	}
	var all []Objects
	for _, namespace := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, *parts[namespace])
	}
	return all
}
