package chain

import (
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Ref names one object.
type Ref struct {
	APIVersion, Kind, Namespace, Name, UID string
}

// Group is the API group of the reference, "" for the core group.
func (r Ref) Group() string {
	group, _, found := strings.Cut(r.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// same says whether both name one object. A version is no part of a name, and
// a side that lacks the group or the namespace matches any.
func (r Ref) same(other Ref) bool {
	if r.UID != "" && other.UID != "" {
		return r.UID == other.UID
	}
	if r.Kind != other.Kind || r.Name != other.Name || !inOne(r.Namespace, other.Namespace) {
		return false
	}
	return r.APIVersion == "" || other.APIVersion == "" || r.Group() == other.Group()
}

// inOne says whether two namespaces may be one: a manifest need not say its own.
func inOne(a, b string) bool { return a == "" || b == "" || a == b }

// Owned is an object of which only the names of its owners matter.
type Owned struct {
	Ref
	// Controller is the owner that manages it; nil for a root.
	Controller *Ref
}

// Workload is a scale target: the counts that the HPA reads, and who wrote them.
type Workload struct {
	Owned
	Spec, Status int32
	// Ready is the workload's own count; nil where it keeps none.
	Ready *int32
	// Updated counts the replicas of the current template; nil where the
	// workload keeps no such count. Fewer than Status mean a rollout.
	Updated *int32
	// Role is "decode" or "prefill" for a part of a disaggregated service.
	Role string
	// Selector is the pods' label selector in its text form; "" for none.
	Selector string
	// Surge is how many replicas more than Spec a rollout may make.
	Surge int32
	// Changed is when anything of the object was last written, its status
	// included, in whole seconds; zero where managedFields are not given.
	Changed time.Time
	// Writer last wrote spec.replicas; nil where managedFields do not say.
	Writer *Writer
}

// Writer is the field manager that owns spec.replicas.
type Writer struct {
	Manager, Subresource string
	// Time is zero where managedFields give none, as older API servers do for
	// the scale subresource.
	Time time.Time
}

// Objects are all objects that a chain may be made of, of any namespace. A nil
// slice of Pods or Events means that they could not be read.
type Objects struct {
	Owners        []Owned
	ScaledObjects []keda.ScaledObject
	HPAs          []autoscalingv2.HorizontalPodAutoscaler
	Workloads     []Workload
	Pods          []corev1.Pod
	Events        []corev1.Event
	// Leader is the HPA controller's Lease, nil where it was not read.
	Leader *Leader
	// KEDAVersion is the version of the KEDA that is installed, "" where no
	// object tells it.
	KEDAVersion string
}

// RefOfScaledObject names a ScaledObject.
func RefOfScaledObject(s keda.ScaledObject) Ref {
	return Ref{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Namespace: s.Metadata.Namespace, Name: s.Metadata.Name, UID: s.Metadata.UID}
}

// RefOfHPA names an HPA.
func RefOfHPA(h *autoscalingv2.HorizontalPodAutoscaler) Ref {
	return Ref{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespace: h.Namespace, Name: h.Name, UID: string(h.UID)}
}

// ControllerOfScaledObject returns the owner that manages a ScaledObject.
func ControllerOfScaledObject(s keda.ScaledObject) *Ref {
	for _, owner := range s.Metadata.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return &Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: s.Metadata.Namespace, Name: owner.Name, UID: owner.UID}
		}
	}
	return nil
}

// controllerOfHPA returns the owner that manages an HPA.
func controllerOfHPA(h *autoscalingv2.HorizontalPodAutoscaler) *Ref {
	for _, owner := range h.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return &Ref{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: h.Namespace, Name: owner.Name, UID: string(owner.UID)}
		}
	}
	return nil
}

// targetOfScaledObject names the workload that a ScaledObject scales.
func targetOfScaledObject(s keda.ScaledObject) Ref {
	target := s.Target()
	return Ref{APIVersion: target.APIVersion, Kind: target.Kind, Namespace: s.Metadata.Namespace, Name: target.Name}
}

// targetOfHPA names the workload that an HPA scales.
func targetOfHPA(h *autoscalingv2.HorizontalPodAutoscaler) Ref {
	target := h.Spec.ScaleTargetRef
	return Ref{APIVersion: target.APIVersion, Kind: target.Kind, Namespace: h.Namespace, Name: target.Name}
}
