// Package llmisvc builds what KServe makes of an LLMInferenceService v1alpha2:
// values from a value, no client.
package llmisvc

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

const (
	// StopAnnotation set to "true" removes the workloads and their scalers.
	StopAnnotation = "serving.kserve.io/stop"
	// Finalizer is what KServe puts on every LLMInferenceService.
	Finalizer = "serving.kserve.io/llmisvc-finalizer"

	partOf = "llminferenceservice"
)

// Service is an LLMInferenceService with everything it inherits.
type Service struct {
	Object *unstructured.Unstructured
	Spec   Spec
}

// Spec is the part of a merged spec that is read here.
type Spec struct {
	Workload `json:",inline"`

	Prefill *Workload `json:"prefill"`
	Model   struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	} `json:"model"`
	Router *struct {
		Gateway   map[string]any `json:"gateway"`
		Route     map[string]any `json:"route"`
		Scheduler map[string]any `json:"scheduler"`
	} `json:"router"`
}

// Workload is what runs: the spec itself (decode, or all of it), or its prefill.
type Workload struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Replicas    *int32            `json:"replicas"`
	Scaling     *Scaling          `json:"scaling"`
	Template    *corev1.PodSpec   `json:"template"`
	Worker      *corev1.PodSpec   `json:"worker"`
}

// Scaling says how a workload scales: by its own KEDA triggers or by WVA.
type Scaling struct {
	MinReplicas *int32         `json:"minReplicas"`
	MaxReplicas int32          `json:"maxReplicas"`
	KEDA        map[string]any `json:"keda"`
	WVA         *WVA           `json:"wva"`
}

// WVA is scaling by the Workload Variant Autoscaler: it computes the replicas,
// and the HPA or KEDA only carries them out.
type WVA struct {
	HPA *struct {
		Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
	} `json:"hpa"`
	KEDA        map[string]any `json:"keda"`
	VariantCost string         `json:"variantCost"`
}

// Role is which part of the service a workload plays.
type Role struct {
	workload *Workload
	// suffix ends the name of the Deployment and, before "-keda" or "-hpa", of
	// the scaler.
	suffix    string
	component string
	label     string
}

// Parse reads a service from its live object and its merged spec, see [Merge].
func Parse(live *unstructured.Unstructured, merged map[string]any) (*Service, error) {
	service := &Service{Object: live}
	if err := object.Decode(merged, &service.Spec); err != nil {
		return nil, fmt.Errorf("read spec: %w", err)
	}
	return service, nil
}

// Stopped says whether the service is told to stop.
func (s *Service) Stopped() bool { return s.Object.GetAnnotations()[StopAnnotation] == "true" }

// Main returns the role of the spec itself: decode where there is a prefill.
func (s *Service) Main() Role {
	role := Role{workload: &s.Spec.Workload, suffix: "-kserve", component: partOf + "-workload", label: "both"}
	if s.Spec.Prefill != nil {
		role.label = "decode"
	}
	return role
}

// Prefill returns the role of the prefill; whether there is one says
// [Role.Exists].
func (s *Service) Prefill() Role {
	return Role{workload: s.Spec.Prefill, suffix: "-kserve-prefill", component: partOf + "-workload-prefill", label: "prefill"}
}

// Exists says whether the service has this role.
func (r Role) Exists() bool { return r.workload != nil }

// MultiNode says whether the role runs on groups of nodes, which needs
// LeaderWorkerSets.
func (r Role) MultiNode() bool { return r.Exists() && r.workload.Worker != nil }

// Replicas returns the replicas that the user fixed, nil where a scaler or
// someone else owns them.
func (r Role) Replicas() *int32 { return r.workload.Replicas }

// DeploymentName returns the name of a role's Deployment.
func (s *Service) DeploymentName(r Role) string {
	return object.ChildName(s.Object.GetName(), r.suffix)
}

// ScaledObjectName returns the name of a role's ScaledObject.
func (s *Service) ScaledObjectName(r Role) string {
	return object.ChildName(s.Object.GetName(), r.suffix+"-keda")
}

// HPAName returns the name of a role's HPA under WVA.
func (s *Service) HPAName(r Role) string {
	return object.ChildName(s.Object.GetName(), r.suffix+"-hpa")
}

// ServiceName returns the name of the workloads' Service.
func (s *Service) ServiceName() string {
	return object.ChildName(s.Object.GetName(), "-kserve-workload-svc")
}

// identity are the labels that scalers and the Service carry. They are the same
// for both roles: on a ScaledObject only the target tells decode from prefill.
func (s *Service) identity() map[string]string {
	return map[string]string{
		"app.kubernetes.io/component": partOf + "-workload",
		"app.kubernetes.io/name":      s.Object.GetName(),
		"app.kubernetes.io/part-of":   partOf,
	}
}
