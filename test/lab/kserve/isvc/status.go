package isvc

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// Conditions of an InferenceService.
const (
	Ready          = "Ready"
	PredictorReady = "PredictorReady"
	IngressReady   = "IngressReady"
	// ConditionStopped is False, which is good, while the service runs.
	ConditionStopped = "Stopped"
)

// Status is the part of an InferenceService's status that the lab's reconciler
// writes.
type Status struct {
	Address            *URL              `json:"address,omitempty"`
	Components         map[string]URL    `json:"components,omitempty"`
	Conditions         object.Conditions `json:"conditions,omitempty"`
	DeploymentMode     string            `json:"deploymentMode,omitempty"`
	ModelStatus        *ModelStatus      `json:"modelStatus,omitempty"`
	ObservedGeneration int64             `json:"observedGeneration,omitempty"`
	URL                string            `json:"url,omitempty"`
}

// URL is an address.
type URL struct {
	URL string `json:"url,omitempty"`
}

// ModelStatus says what is known of the model's loading.
type ModelStatus struct {
	Copies           *Copies `json:"copies,omitempty"`
	States           *States `json:"states,omitempty"`
	TransitionStatus string  `json:"transitionStatus"`
}

// Copies counts the pods that hold the model.
type Copies struct {
	FailedCopies int64 `json:"failedCopies"`
	TotalCopies  int64 `json:"totalCopies"`
}

// States are the states of the model in service and of the one to come.
type States struct {
	ActiveModelState string `json:"activeModelState"`
	TargetModelState string `json:"targetModelState,omitempty"`
}

// Observe returns the status after a reconcile that went well, from the last
// status and the predictor's Deployment, nil while there is none.
//
// Two habits of KServe make this status a poor witness of a rollout. The
// predictor is ready as long as the Deployment is Available, also while its new
// pods never start. And the observed generation is the Deployment's.
func (s *Service) Observe(last Status, deployment *appsv1.Deployment, now time.Time) Status {
	next := last
	next.DeploymentMode = ModeStandard
	next.Conditions = next.Conditions.Set(stopped(object.False), now)
	predictor := predictorReady(deployment)
	next.Conditions = next.Conditions.Set(predictor, now)
	ingress := object.Condition{Type: IngressReady, Status: object.True}
	if predictor.Status != object.True {
		ingress.Status, ingress.Reason = object.False, "Predictor ingress not created"
	} else {
		next.Address = &URL{"http://" + s.Component() + "." + s.Object.GetNamespace() + ".svc.cluster.local"}
		next.Components = map[string]URL{"predictor": {"http://" + s.host(s.Component())}}
		next.URL = "http://" + s.host(s.Object.GetName())
	}
	next.Conditions = next.Conditions.Set(ingress, now)
	next.Conditions = next.Conditions.Set(next.Conditions.Summary(Ready, IngressReady, PredictorReady), now)
	if deployment != nil {
		next.ObservedGeneration = deployment.Status.ObservedGeneration
	}
	next.ModelStatus = modelStatus(predictor.Status == object.True, last.ModelStatus, deployment)
	return next
}

// predictorReady is the Deployment's Available condition, told with the words
// of its Progressing condition once a rollout is complete.
func predictorReady(deployment *appsv1.Deployment) object.Condition {
	ready := object.Condition{Type: PredictorReady, Status: object.Unknown}
	if deployment == nil {
		return ready
	}
	for _, condition := range deployment.Status.Conditions {
		switch {
		case condition.Type == appsv1.DeploymentAvailable:
			ready.Status, ready.Reason, ready.Message = string(condition.Status), condition.Reason, condition.Message
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == "NewReplicaSetAvailable" &&
			ready.Status == string(corev1.ConditionTrue):
			ready.Reason, ready.Message = condition.Reason, condition.Message
		}
	}
	return ready
}

func modelStatus(ready bool, last *ModelStatus, deployment *appsv1.Deployment) *ModelStatus {
	if !ready {
		active := ""
		if last != nil && last.States != nil {
			active = last.States.ActiveModelState
		}
		return &ModelStatus{
			States:           &States{ActiveModelState: active, TargetModelState: "Pending"},
			TransitionStatus: "InProgress",
		}
	}
	return &ModelStatus{
		Copies:           &Copies{TotalCopies: int64(deployment.Status.ReadyReplicas)},
		States:           &States{ActiveModelState: "Loaded", TargetModelState: "Loaded"},
		TransitionStatus: "UpToDate",
	}
}

// Failed returns the status after a reconcile that failed. Everything but the
// predictor's readiness and what follows from it stays.
func Failed(last Status, reason, message string, now time.Time) Status {
	next := last
	next.DeploymentMode = ModeStandard
	next.Conditions = next.Conditions.Set(object.Condition{
		Type: PredictorReady, Status: object.False, Reason: reason, Message: message,
	}, now)
	next.Conditions = next.Conditions.Set(next.Conditions.Summary(Ready, PredictorReady), now)
	return next
}

// Halted returns the status of a service that is told to stop.
func Halted(last Status, now time.Time) Status {
	next := Status{DeploymentMode: ModeStandard, Conditions: last.Conditions}
	next.ModelStatus = &ModelStatus{
		States:           &States{TargetModelState: ""},
		TransitionStatus: "UpToDate",
	}
	next.Conditions = next.Conditions.Set(stopped(object.True), now)
	for _, kind := range []string{IngressReady, PredictorReady, Ready} {
		next.Conditions = next.Conditions.Set(object.Condition{Type: kind, Status: object.False, Reason: "Stopped"}, now)
	}
	return next
}

func stopped(status string) object.Condition {
	return object.Condition{Type: ConditionStopped, Status: status, Severity: "Info"}
}
