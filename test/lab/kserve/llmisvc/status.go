package llmisvc

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// Conditions of an LLMInferenceService.
const (
	Ready                = "Ready"
	MainWorkloadReady    = "MainWorkloadReady"
	PrefillWorkloadReady = "PrefillWorkloadReady"
	ScalingReady         = "ScalingReady"
	PrefillScalingReady  = "PrefillScalingReady"
	WorkloadsReady       = "WorkloadsReady"
	RouterReady          = "RouterReady"
	PresetsCombined      = "PresetsCombined"
)

// Status is the part of an LLMInferenceService's status that the lab's
// reconciler writes.
type Status struct {
	Addresses          []Address         `json:"addresses,omitempty"`
	Annotations        map[string]string `json:"annotations,omitempty"`
	AppliedConfigs     []AppliedConfig   `json:"appliedConfigs,omitempty"`
	Conditions         object.Conditions `json:"conditions,omitempty"`
	ObservedGeneration int64             `json:"observedGeneration,omitempty"`
	URL                string            `json:"url,omitempty"`
	Workloads          *Workloads        `json:"workloads,omitempty"`
}

// Address is where the service answers.
type Address struct {
	URL string `json:"url"`
}

// AppliedConfig is a config that the service inherits from: a preset, or one
// that it refers to (UserRef).
type AppliedConfig struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Source    string `json:"source"`
}

// Workloads names the generated objects.
type Workloads struct {
	Primary *Reference `json:"primary,omitempty"`
	Prefill *Reference `json:"prefill,omitempty"`
	Service *Reference `json:"service,omitempty"`
}

// Reference names one generated object.
type Reference struct {
	APIGroup      string `json:"apiGroup,omitempty"`
	Kind          string `json:"kind"`
	Name          string `json:"name"`
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`
}

// Observed is what a reconcile found of one role.
type Observed struct {
	Role       Role
	Deployment *appsv1.Deployment
	// Scaler is the ScaledObject or the HPA, nil where there is none or none
	// is known yet.
	Scaler *unstructured.Unstructured
}

// Observe returns the status after a reconcile that went well. The generation
// counts as observed although KEDA may not have looked at the change yet: for a
// moment "observed and Ready" is about the old thresholds.
func (s *Service) Observe(last Status, main, prefill Observed, now time.Time) Status {
	next := s.begin(last, now)
	next.Workloads = &Workloads{
		Primary: s.reference(main),
		Service: &Reference{Kind: "Service", Name: s.ServiceName()},
	}
	next.Addresses = []Address{{"http://" + s.ServiceName() + "." + s.Object.GetNamespace() + ".svc.cluster.local"}}
	parts := []string{MainWorkloadReady}
	next.Conditions = next.Conditions.Set(workloadReady(MainWorkloadReady, main.Deployment), now)
	next.Conditions, parts = scaling(next.Conditions, parts, ScalingReady, main, now)
	if prefill.Role.Exists() {
		next.Workloads.Prefill = s.reference(prefill)
		next.Conditions = next.Conditions.Set(workloadReady(PrefillWorkloadReady, prefill.Deployment), now)
		parts = append(parts, PrefillWorkloadReady)
		next.Conditions, parts = scaling(next.Conditions, parts, PrefillScalingReady, prefill, now)
	} else {
		next.Conditions = next.Conditions.Drop(PrefillWorkloadReady, PrefillScalingReady)
	}
	return conclude(next, now, parts...)
}

// begin sets what holds however the reconcile ends.
func (s *Service) begin(last Status, now time.Time) Status {
	next := last
	next.ObservedGeneration = s.Object.GetGeneration()
	next.Conditions = next.Conditions.Set(object.Condition{Type: PresetsCombined, Status: object.True}, now)
	// Without a router there is nothing to wait for; with one, KServe leaves
	// the condition True even when it cannot make the route.
	next.Conditions = next.Conditions.Set(object.Condition{Type: RouterReady, Status: object.True}, now)
	return next
}

func conclude(next Status, now time.Time, parts ...string) Status {
	next.Conditions = next.Conditions.Set(next.Conditions.Summary(WorkloadsReady, parts...), now)
	next.Conditions = next.Conditions.Set(
		next.Conditions.Summary(Ready, PresetsCombined, WorkloadsReady, RouterReady), now)
	return next
}

func (s *Service) reference(observed Observed) *Reference {
	reference := &Reference{APIGroup: "apps", Kind: "Deployment", Name: s.DeploymentName(observed.Role)}
	if observed.Deployment != nil {
		reference.ReadyReplicas = new(observed.Deployment.Status.ReadyReplicas)
	}
	return reference
}

// workloadReady is the Deployment's Available condition: True also while a
// rollout hangs.
func workloadReady(kind string, deployment *appsv1.Deployment) object.Condition {
	ready := object.Condition{
		Type: kind, Severity: "Info", Status: object.False,
		Reason: "MinimumReplicasUnavailable", Message: "Deployment does not have minimum availability.",
	}
	if deployment == nil {
		return ready
	}
	for _, condition := range deployment.Status.Conditions {
		switch {
		case condition.Type != appsv1.DeploymentAvailable:
		case string(condition.Status) == object.True:
			return object.Condition{Type: kind, Severity: "Info", Status: object.True}
		default:
			ready.Status, ready.Reason, ready.Message = string(condition.Status), condition.Reason, condition.Message
		}
	}
	return ready
}

// scaling sets or drops the scaling condition of a role, and adds it to the
// parts that readiness is made of where it is set.
func scaling(conditions object.Conditions, parts []string, kind string, observed Observed, now time.Time) (object.Conditions, []string) {
	if observed.Role.workload.Scaling == nil {
		return conditions.Drop(kind), parts
	}
	ready := scalerReady(observed)
	ready.Type, ready.Severity = kind, "Info"
	return conditions.Set(ready, now), append(parts, kind)
}

// scalerReady is KEDA's word on the ScaledObject, its reason and message
// included, or the HPA's.
func scalerReady(observed Observed) object.Condition {
	wanted, progressing := []string{"Ready"}, "ScaledObjectProgressing"
	if wva := observed.Role.workload.Scaling.WVA; wva != nil && wva.HPA != nil {
		wanted, progressing = []string{"AbleToScale", "ScalingActive"}, "HPAProgressing"
	}
	var status struct {
		Conditions object.Conditions `json:"conditions"`
	}
	if observed.Scaler == nil || object.Decode(observed.Scaler.Object["status"], &status) != nil {
		return object.Condition{Status: object.False, Reason: progressing}
	}
	for _, kind := range wanted {
		switch found := status.Conditions.Get(kind); found.Status {
		case object.True:
		case object.False:
			return object.Condition{Status: object.False, Reason: found.Reason, Message: found.Message}
		default:
			return object.Condition{Status: object.False, Reason: progressing}
		}
	}
	return object.Condition{Status: object.True}
}

// Failed returns the status after a reconcile that failed: the main workload is
// not ready, for the reason given, whichever role the failure was in.
func (s *Service) Failed(last Status, reason, message string, now time.Time) Status {
	next := s.begin(last, now)
	next.Conditions = next.Conditions.Set(object.Condition{
		Type: MainWorkloadReady, Severity: "Info", Status: object.False, Reason: reason, Message: message,
	}, now)
	return conclude(next, now, MainWorkloadReady)
}

// FailedPresets returns the status of a service whose bases cannot be read.
func FailedPresets(last Status, generation int64, message string, now time.Time) Status {
	next := last
	next.ObservedGeneration = generation
	next.Conditions = next.Conditions.Set(object.Condition{
		Type: PresetsCombined, Status: object.False, Reason: "CombineBaseError", Message: message,
	}, now)
	next.Conditions = next.Conditions.Set(next.Conditions.Summary(Ready, PresetsCombined), now)
	return next
}

// Halted returns the status of a service that is told to stop.
func (s *Service) Halted(last Status, now time.Time) Status {
	next := s.begin(last, now)
	next.Workloads, next.Addresses = nil, nil
	next.Conditions = next.Conditions.Drop(ScalingReady, PrefillScalingReady, PrefillWorkloadReady)
	kinds := []string{MainWorkloadReady, WorkloadsReady, RouterReady, Ready}
	if s.Spec.Prefill != nil {
		kinds = append(kinds, PrefillWorkloadReady)
	}
	for _, kind := range kinds {
		condition := object.Condition{Type: kind, Status: object.False, Reason: "Stopped"}
		if kind == MainWorkloadReady || kind == PrefillWorkloadReady {
			condition.Severity = "Info"
		}
		next.Conditions = next.Conditions.Set(condition, now)
	}
	return next
}
