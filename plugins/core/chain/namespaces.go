package chain

import (
	"maps"
	"slices"
)

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
