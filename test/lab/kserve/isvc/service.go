// Package isvc builds what KServe makes of an InferenceService v1beta1 in
// Standard (formerly RawDeployment) mode: values from a value, no client.
package isvc

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

const (
	// ModeAnnotation chooses how KServe deploys; only [ModeStandard] is built
	// here, also for its old name [ModeRaw] and where nothing is said.
	ModeAnnotation = "serving.kserve.io/deploymentMode"
	ModeStandard   = "Standard"
	ModeRaw        = "RawDeployment"

	// ClassAnnotation chooses who scales the predictor.
	ClassAnnotation = "serving.kserve.io/autoscalerClass"
	// StopAnnotation set to "true" removes the workload and its scaler.
	StopAnnotation = "serving.kserve.io/stop"

	// Finalizer is what KServe puts on every InferenceService.
	Finalizer = "inferenceservice.finalizers"

	// storageAnnotation tells KServe's pod webhook which model to fetch.
	storageAnnotation = "internal.serving.kserve.io/storage-initializer-sourceuri"
	lastApplied       = "kubectl.kubernetes.io/last-applied-configuration"
	serviceLabel      = "serving.kserve.io/inferenceservice"
	container         = "kserve-container"
)

// Class says who owns the predictor's replicas.
type Class string

// The classes of [ClassAnnotation].
const (
	ClassHPA      Class = "hpa"
	ClassKEDA     Class = "keda"
	ClassExternal Class = "external"
	ClassNone     Class = "none"
)

// Service is an InferenceService as the reconciler reads it.
type Service struct {
	Object    *unstructured.Unstructured
	Predictor Predictor
}

// Predictor is spec.predictor: a pod spec with the fields of a component.
type Predictor struct {
	corev1.PodSpec `json:",inline"`

	Name               string                     `json:"name"`
	Labels             map[string]string          `json:"labels"`
	Annotations        map[string]string          `json:"annotations"`
	MinReplicas        *int32                     `json:"minReplicas"`
	MaxReplicas        int32                      `json:"maxReplicas"`
	ScaleTarget        *int32                     `json:"scaleTarget"`
	ScaleMetric        string                     `json:"scaleMetric"`
	ScaleMetricType    string                     `json:"scaleMetricType"`
	AutoScaling        *AutoScaling               `json:"autoScaling"`
	DeploymentStrategy *appsv1.DeploymentStrategy `json:"deploymentStrategy"`
	Model              *Model                     `json:"model"`
}

// Model is spec.predictor.model. KServe completes it from a ServingRuntime; the
// lab has none, so the image must be here.
type Model struct {
	corev1.Container `json:",inline"`

	StorageURI string `json:"storageUri"`
}

// AutoScaling is spec.predictor.autoScaling.
type AutoScaling struct {
	Metrics  []Metric                                       `json:"metrics"`
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

// Metric is one entry of spec.predictor.autoScaling.metrics.
type Metric struct {
	Type     string `json:"type"`
	External *struct {
		Metric struct {
			Backend       string `json:"backend"`
			ServerAddress string `json:"serverAddress"`
			Query         string `json:"query"`
			Namespace     string `json:"namespace"`
		} `json:"metric"`
		Target            Target `json:"target"`
		AuthenticationRef *struct {
			AuthModes         string `json:"authModes"`
			AuthenticationRef struct {
				Name string `json:"name"`
			} `json:"authenticationRef"`
		} `json:"authenticationRef"`
	} `json:"external"`
	PodMetric *struct {
		Metric struct {
			ServerAddress     string   `json:"serverAddress"`
			MetricNames       []string `json:"metricNames"`
			Query             string   `json:"query"`
			OperationOverTime string   `json:"operationOverTime"`
		} `json:"metric"`
		Target Target `json:"target"`
	} `json:"podmetric"`
	Resource *struct {
		Name   corev1.ResourceName `json:"name"`
		Target Target              `json:"target"`
	} `json:"resource"`
}

// Target is a metric's target. Values are quantities, as a string or a number.
type Target struct {
	Type               string `json:"type"`
	Value              any    `json:"value"`
	AverageValue       any    `json:"averageValue"`
	AverageUtilization *int32 `json:"averageUtilization"`
}

// Parse reads an InferenceService.
func Parse(live *unstructured.Unstructured) (*Service, error) {
	service := &Service{Object: live}
	predictor, _, err := unstructured.NestedMap(live.Object, "spec", "predictor")
	if err != nil {
		return nil, fmt.Errorf("read predictor: %w", err)
	}
	if err := object.Decode(predictor, &service.Predictor); err != nil {
		return nil, fmt.Errorf("read predictor: %w", err)
	}
	return service, nil
}

// Class returns who scales the predictor: hpa where nothing is said.
func (s *Service) Class() Class {
	if class := s.Object.GetAnnotations()[ClassAnnotation]; class != "" {
		return Class(class)
	}
	return ClassHPA
}

// Stopped says whether the service is told to stop.
func (s *Service) Stopped() bool { return s.Object.GetAnnotations()[StopAnnotation] == "true" }

// Component returns the name that the predictor's children share.
func (s *Service) Component() string {
	if s.Predictor.Name != "" {
		return s.Object.GetName() + "-" + s.Predictor.Name + "-predictor"
	}
	return s.Object.GetName() + "-predictor"
}

// selector returns the label that selects the predictor's pods.
func (s *Service) selector() map[string]string {
	return map[string]string{"app": "isvc." + s.Component()}
}

// labels are those of every child and of the pods. The service's own are among
// them, so that touching one restarts the pods.
func (s *Service) labels() map[string]string {
	return object.Union(s.Object.GetLabels(), s.Predictor.Labels, s.selector(),
		map[string]string{serviceLabel: s.Object.GetName(), "component": "predictor"})
}

// annotations are those of every child and of the pods, as [Service.labels]. The
// mode has its new spelling even before admission has given it to the service.
func (s *Service) annotations() map[string]string {
	annotations := object.Union(object.Without(s.Object.GetAnnotations(), lastApplied), s.Predictor.Annotations)
	if annotations[ModeAnnotation] == ModeRaw {
		annotations[ModeAnnotation] = ModeStandard
	}
	return annotations
}
