package chain

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Chain is one line of objects that decides one workload's size.
type Chain struct {
	// Owners leads from the root to the owner of the scaler or the workload.
	Owners []Ref
	// ScaledObject is nil for an HPA without KEDA, HPA is nil where KEDA is
	// paused, or nothing scales the workload.
	ScaledObject *keda.ScaledObject
	HPA          *autoscalingv2.HorizontalPodAutoscaler
	// Target names the scale target; Workload is nil where it was not read.
	Target   Ref
	Workload *Workload
	// Pods and Events belong to the workload and to the HPA; nil where they
	// were not readable.
	Pods   []corev1.Pod
	Events []corev1.Event
	// Related are the events of the ScaledObject and of the workload: what KEDA
	// and the workload's controller did.
	Related []corev1.Event
	// Rivals are other HPAs and ScaledObjects with the same target: they fight.
	Rivals []Ref
	// KEDAVersion is the version of the KEDA that is installed, "" where it is
	// not known. The HPA's own label, if there is one, is nearer.
	KEDAVersion string
}

// Links are the chain's objects from the root to the workload.
func (c Chain) Links() []Ref {
	links := slices.Clone(c.Owners)
	if c.ScaledObject != nil {
		links = append(links, RefOfScaledObject(*c.ScaledObject))
	}
	if c.HPA != nil {
		links = append(links, RefOfHPA(c.HPA))
	}
	return append(links, c.Target)
}

// Find returns the chains that ref is a link of, in the order of their names.
func (o Objects) Find(ref Ref) []Chain {
	var found []Chain
	for _, chain := range o.All() {
		if slices.ContainsFunc(chain.Links(), ref.same) {
			found = append(found, chain)
		}
	}
	return found
}

// All joins the objects into chains: one a workload that has a scaler or that
// stands alone, in the order of the workloads' names.
func (o Objects) All() []Chain {
	var chains []Chain
	used := map[*autoscalingv2.HorizontalPodAutoscaler]bool{}
	for i := range o.ScaledObjects {
		so := o.ScaledObjects[i]
		chain := Chain{ScaledObject: &so, Target: targetOfScaledObject(so)}
		if hpa := o.hpaOf(so); hpa != nil {
			chain.HPA = hpa
			used[hpa] = true
		}
		chains = append(chains, o.complete(chain))
	}
	for i := range o.HPAs {
		if hpa := &o.HPAs[i]; !used[hpa] {
			chains = append(chains, o.complete(Chain{HPA: hpa, Target: targetOfHPA(hpa)}))
		}
	}
	for _, workload := range o.Workloads {
		if !slices.ContainsFunc(chains, func(c Chain) bool { return c.Target.same(workload.Ref) }) {
			chains = append(chains, o.complete(Chain{Target: workload.Ref}))
		}
	}
	slices.SortStableFunc(chains, func(a, b Chain) int { return compare(a.Target, b.Target) })
	return chains
}

func compare(a, b Ref) int {
	return slices.Compare([]string{a.Namespace, a.Name, a.Kind}, []string{b.Namespace, b.Name, b.Kind})
}

// hpaOf returns the HPA of a ScaledObject: the one that it owns, else the one
// of the name that its status gives.
func (o Objects) hpaOf(so keda.ScaledObject) *autoscalingv2.HorizontalPodAutoscaler {
	ref := RefOfScaledObject(so)
	for i := range o.HPAs {
		if owner := controllerOfHPA(&o.HPAs[i]); owner != nil && owner.same(ref) {
			return &o.HPAs[i]
		}
	}
	for i := range o.HPAs {
		if o.HPAs[i].Name == so.HPAName() && controllerOfHPA(&o.HPAs[i]) == nil && inOne(o.HPAs[i].Namespace, ref.Namespace) {
			return &o.HPAs[i]
		}
	}
	return nil
}

// complete fills in the workload, the owners, the pods and the events.
func (o Objects) complete(chain Chain) Chain {
	for i := range o.Workloads {
		if o.Workloads[i].same(chain.Target) {
			chain.Workload = &o.Workloads[i]
			chain.Target = o.Workloads[i].Ref
		}
	}
	chain.Owners = o.ownersOf(chain)
	if chain.ScaledObject != nil {
		chain.KEDAVersion = o.KEDAVersion
	}
	chain.AddEvents(o.Events)
	chain.Rivals = o.rivalsOf(chain)
	if chain.Workload != nil && o.Pods != nil {
		chain.Pods = podsOf(o.Pods, chain.Target.Namespace, chain.Workload.Selector)
	}
	return chain
}

// AddEvents gives the chain those events that are about its links; nil stays
// nil: unknown.
func (c *Chain) AddEvents(events []corev1.Event) {
	if c.HPA != nil {
		c.Events = eventsOf(events, RefOfHPA(c.HPA))
	}
	if c.ScaledObject != nil {
		c.Related = append(c.Related, eventsOf(events, RefOfScaledObject(*c.ScaledObject))...)
	}
	c.Related = append(c.Related, eventsOf(events, c.Target)...)
	if events != nil && c.Related == nil {
		c.Related = []corev1.Event{}
	}
}

// ownersOf climbs from the scaler to the root. Where the scaler leads to no
// owner that the workload has too, the workload's come first: a hand-made
// ScaledObject belongs to a service by its workload only.
func (o Objects) ownersOf(chain Chain) []Ref {
	var owners []Ref
	switch {
	case chain.ScaledObject != nil:
		owners = o.climb(ControllerOfScaledObject(*chain.ScaledObject))
	case chain.HPA != nil:
		owners = o.climb(controllerOfHPA(chain.HPA))
	}
	if chain.Workload == nil {
		return owners
	}
	above := o.climb(chain.Workload.Controller)
	for _, owner := range owners {
		if !slices.ContainsFunc(above, owner.same) {
			above = append(above, owner)
		}
	}
	return above
}

// climb returns the owners from the root down to next. Eight are more than any
// object has.
func (o Objects) climb(next *Ref) []Ref {
	var owners []Ref
	for range 8 {
		if next == nil {
			break
		}
		owners = append([]Ref{*next}, owners...)
		next = o.controllerOf(*next)
	}
	return owners
}

func (o Objects) controllerOf(ref Ref) *Ref {
	for _, owned := range o.Owners {
		if owned.same(ref) {
			return owned.Controller
		}
	}
	return nil
}

func eventsOf(events []corev1.Event, ref Ref) []corev1.Event {
	if events == nil {
		return nil
	}
	own := []corev1.Event{}
	for _, event := range events {
		about := event.InvolvedObject
		if ref.same(Ref{Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: string(about.UID)}) {
			own = append(own, event)
		}
	}
	return own
}
