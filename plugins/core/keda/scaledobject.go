package keda

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// ScaledObject is what matters of a keda.sh/v1alpha1 ScaledObject.
type ScaledObject struct {
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`
	Status   Status   `json:"status"`
}

// Metadata is the object's own.
type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	Generation        int64             `json:"generation"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []OwnerReference  `json:"ownerReferences"`
	CreationTimestamp *time.Time        `json:"creationTimestamp"`
}

// OwnerReference names an owner; Controller marks the one that manages.
type OwnerReference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller *bool  `json:"controller"`
}

// Spec is the user's part.
type Spec struct {
	ScaleTargetRef   TargetRef `json:"scaleTargetRef"`
	PollingInterval  *int32    `json:"pollingInterval"`
	CooldownPeriod   *int32    `json:"cooldownPeriod"`
	InitialCooldown  *int32    `json:"initialCooldownPeriod"`
	IdleReplicaCount *int32    `json:"idleReplicaCount"`
	MinReplicaCount  *int32    `json:"minReplicaCount"`
	MaxReplicaCount  *int32    `json:"maxReplicaCount"`
	Fallback         *Fallback `json:"fallback"`
	Advanced         *Advanced `json:"advanced"`
	Triggers         []Trigger `json:"triggers"`
}

// TargetRef names the workload; an empty kind is an apps/v1 Deployment.
type TargetRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Fallback is the size asked for while a trigger fails.
type Fallback struct {
	FailureThreshold int32  `json:"failureThreshold"`
	Replicas         int32  `json:"replicas"`
	Behavior         string `json:"behavior"`
}

// Advanced holds the settings of the HPA and the composite metric.
type Advanced struct {
	HPA       *HPAConfig `json:"horizontalPodAutoscalerConfig"`
	Modifiers *Modifiers `json:"scalingModifiers"`
}

// HPAConfig names the HPA; its behavior is copied to the HPA as it is.
type HPAConfig struct {
	Name     string                                         `json:"name"`
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

// Modifiers make one metric of all external triggers.
type Modifiers struct {
	Formula          string `json:"formula"`
	Target           string `json:"target"`
	ActivationTarget string `json:"activationTarget"`
	MetricType       string `json:"metricType"`
}

// Trigger is one source of load.
type Trigger struct {
	Type              string            `json:"type"`
	Name              string            `json:"name"`
	UseCachedMetrics  bool              `json:"useCachedMetrics"`
	Metadata          map[string]string `json:"metadata"`
	MetricType        string            `json:"metricType"`
	AuthenticationRef *struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	} `json:"authenticationRef"`
}

// Status is KEDA's part.
type Status struct {
	HPAName             string              `json:"hpaName"`
	LastActiveTime      *time.Time          `json:"lastActiveTime"`
	ExternalMetricNames []string            `json:"externalMetricNames"`
	CompositeScalerName string              `json:"compositeScalerName"`
	Conditions          []Condition         `json:"conditions"`
	Health              map[string]Health   `json:"health"`
	TriggersActivity    map[string]Activity `json:"triggersActivity"`
}

// Condition is a condition of the ScaledObject.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Health counts a metric's failures in a row; kept only with a fallback.
type Health struct {
	NumberOfFailures *int32 `json:"numberOfFailures"`
	Status           string `json:"status"`
}

// Activity is a trigger's last activation.
type Activity struct {
	IsActive bool `json:"isActive"`
}

// Parse reads a ScaledObject from its unstructured content.
func Parse(object map[string]any) (ScaledObject, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return ScaledObject{}, fmt.Errorf("read scaledobject: %w", err)
	}
	var parsed ScaledObject
	if err := json.Unmarshal(data, &parsed); err != nil {
		return ScaledObject{}, fmt.Errorf("read scaledobject: %w", err)
	}
	return parsed, nil
}

// Defaults of the ScaledObject's fields.
const (
	defaultMaxReplicas     = 100
	defaultPollingInterval = 30 * time.Second
	defaultCooldown        = 300 * time.Second
)

// Min is minReplicaCount, 0 where it is not set.
func (s ScaledObject) Min() int32 {
	if s.Spec.MinReplicaCount != nil {
		return *s.Spec.MinReplicaCount
	}
	return 0
}

// HPAMin is the HPA's minReplicas: an HPA of KEDA never has 0.
func (s ScaledObject) HPAMin() int32 { return max(s.Min(), 1) }

// Max is maxReplicaCount, 100 where it is not set.
func (s ScaledObject) Max() int32 {
	if s.Spec.MaxReplicaCount != nil {
		return *s.Spec.MaxReplicaCount
	}
	return defaultMaxReplicas
}

// PollingInterval is the pace of KEDA's own loop, which switches between zero
// and one; between one and the maximum the HPA asks at its own pace.
func (s ScaledObject) PollingInterval() time.Duration {
	return seconds(s.Spec.PollingInterval, defaultPollingInterval)
}

// Cooldown is the wait before the step to zero or to the idle count. It has no
// effect on steps between the minimum and the maximum.
func (s ScaledObject) Cooldown() time.Duration {
	return seconds(s.Spec.CooldownPeriod, defaultCooldown)
}

func seconds(n *int32, otherwise time.Duration) time.Duration {
	if n == nil {
		return otherwise
	}
	return time.Duration(*n) * time.Second
}

// HPAName is the name of the HPA: status.hpaName is the truth, the rest is
// what KEDA would choose.
func (s ScaledObject) HPAName() string {
	switch {
	case s.Status.HPAName != "":
		return s.Status.HPAName
	case s.Spec.Advanced != nil && s.Spec.Advanced.HPA != nil && s.Spec.Advanced.HPA.Name != "":
		return s.Spec.Advanced.HPA.Name
	}
	return "keda-hpa-" + s.Metadata.Name
}

// Target is scaleTargetRef with its defaults.
func (s ScaledObject) Target() TargetRef {
	target := s.Spec.ScaleTargetRef
	if target.Kind == "" {
		target.Kind = "Deployment"
		if target.APIVersion == "" {
			target.APIVersion = "apps/v1"
		}
	}
	return target
}

// Condition returns the condition of a type; ok is false without one.
func (s ScaledObject) Condition(kind string) (condition Condition, ok bool) {
	for _, condition := range s.Status.Conditions {
		if condition.Type == kind {
			return condition, true
		}
	}
	return Condition{}, false
}

// Composite says whether scalingModifiers replace the external metrics by one.
func (s ScaledObject) Composite() bool {
	return s.Spec.Advanced != nil && s.Spec.Advanced.Modifiers != nil && s.Spec.Advanced.Modifiers.Formula != ""
}

// Annotations by which a ScaledObject is paused or held active.
const (
	annotationPaused         = "autoscaling.keda.sh/paused"
	annotationPausedReplicas = "autoscaling.keda.sh/paused-replicas"
	annotationPausedScaleIn  = "autoscaling.keda.sh/paused-scale-in"
	annotationPausedScaleOut = "autoscaling.keda.sh/paused-scale-out"
	annotationForceActive    = "autoscaling.keda.sh/force-activation"
)

// Pause is how a ScaledObject is paused.
type Pause struct {
	// All: KEDA has deleted the HPA, nothing changes the size.
	All bool
	// Replicas is the size that paused-replicas holds; nil without it.
	Replicas *int32
	// In and Out: steps down or up are switched off in the HPA's behavior.
	In, Out bool
}

// Pause reads the annotations. Where both forms of a full pause are given,
// paused-replicas decides.
func (s ScaledObject) Pause() Pause {
	annotations := s.Metadata.Annotations
	pause := Pause{In: on(annotations, annotationPausedScaleIn), Out: on(annotations, annotationPausedScaleOut)}
	if text, given := annotations[annotationPausedReplicas]; given {
		pause.All = true
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			replicas := int32(n)
			pause.Replicas = &replicas
		}
		return pause
	}
	pause.All = on(annotations, annotationPaused)
	return pause
}

// Resumed is the object without the annotations of a full pause.
func (s ScaledObject) Resumed() ScaledObject {
	s.Metadata.Annotations = maps.Clone(s.Metadata.Annotations)
	delete(s.Metadata.Annotations, annotationPaused)
	delete(s.Metadata.Annotations, annotationPausedReplicas)
	return s
}

// ForceActive says whether the object counts as active whatever its triggers.
func (s ScaledObject) ForceActive() bool {
	return on(s.Metadata.Annotations, annotationForceActive)
}

// on reads a boolean annotation; KEDA takes text that is no boolean for true.
func on(annotations map[string]string, name string) bool {
	text, given := annotations[name]
	if !given {
		return false
	}
	value, err := strconv.ParseBool(text)
	return err != nil || value
}
