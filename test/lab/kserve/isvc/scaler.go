package isvc

import (
	"cmp"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

const (
	// Windows that KServe's configuration gives a ScaledObject whose service
	// names none, in seconds.
	defaultUpWindow   = 0
	defaultDownWindow = 300
	// defaultUtilization is the CPU target of an HPA, in percent of the request.
	defaultUtilization = 80
)

// ErrNoMetrics says that class keda has nothing to scale by.
var ErrNoMetrics = errors.New("autoscaler class keda needs autoScaling metrics")

// ScaledObject returns the predictor's ScaledObject, for [ClassKEDA]. Of a
// behavior only the two windows survive; of a metric's target only the value:
// KEDA then takes it as an average per replica, whatever type the target has.
func (s *Service) ScaledObject() (*unstructured.Unstructured, error) {
	triggers, err := s.triggers()
	if err != nil {
		return nil, err
	}
	up, down := int32(defaultUpWindow), int32(defaultDownWindow)
	if scaling := s.Predictor.AutoScaling; scaling != nil && scaling.Behavior != nil {
		up = window(scaling.Behavior.ScaleUp, up)
		down = window(scaling.Behavior.ScaleDown, down)
	}
	meta, err := object.Encode(new(object.Owned(s.Object, s.Component(), s.labels(), s.annotations())))
	if err != nil {
		return nil, err
	}
	delete(meta, "creationTimestamp")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1",
		"kind":       "ScaledObject",
		"metadata":   meta,
		"spec": map[string]any{
			"scaleTargetRef":  map[string]any{"name": s.Component()},
			"minReplicaCount": int64(s.minReplicas()),
			"maxReplicaCount": int64(s.maxReplicas()),
			"advanced": map[string]any{
				"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{
					"scaleUp":   map[string]any{"stabilizationWindowSeconds": int64(up)},
					"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(down)},
				}},
				"scalingModifiers": map[string]any{},
			},
			"triggers": triggers,
		},
	}}, nil
}

func window(rules *autoscalingv2.HPAScalingRules, otherwise int32) int32 {
	if rules != nil && rules.StabilizationWindowSeconds != nil {
		return *rules.StabilizationWindowSeconds
	}
	return otherwise
}

func (s *Service) triggers() ([]any, error) {
	if s.Predictor.AutoScaling == nil || len(s.Predictor.AutoScaling.Metrics) == 0 {
		return nil, ErrNoMetrics
	}
	var triggers []any
	for i, metric := range s.Predictor.AutoScaling.Metrics {
		trigger, err := metric.trigger()
		if err != nil {
			return nil, fmt.Errorf("read metric %d: %w", i, err)
		}
		triggers = append(triggers, trigger)
	}
	return triggers, nil
}

// trigger translates one metric. A trigger gets no name and no metricType.
func (m Metric) trigger() (map[string]any, error) {
	switch {
	case m.Type == "External" && m.External != nil:
		return m.external(), nil
	case m.Type == "PodMetric" && m.PodMetric != nil:
		metric := m.PodMetric.Metric
		return map[string]any{"type": "external", "metadata": set(map[string]any{},
			"scalerAddress", metric.ServerAddress,
			"metricQuery", metric.Query,
			"operationOverTime", metric.OperationOverTime,
			"targetValue", text(m.PodMetric.Target.Value),
		)}, nil
	case m.Type == "Resource" && m.Resource != nil:
		value := text(m.Resource.Target.AverageValue)
		if m.Resource.Target.AverageUtilization != nil {
			value = fmt.Sprint(*m.Resource.Target.AverageUtilization)
		}
		return map[string]any{
			"type":       string(m.Resource.Name),
			"metricType": cmp.Or(m.Resource.Target.Type, string(autoscalingv2.UtilizationMetricType)),
			"metadata":   map[string]any{"value": value},
		}, nil
	default:
		return nil, fmt.Errorf("metric type %q lacks its source", m.Type)
	}
}

func (m Metric) external() map[string]any {
	metric, target := m.External.Metric, m.External.Target
	metadata := set(map[string]any{},
		"serverAddress", metric.ServerAddress,
		"query", metric.Query,
		"namespace", metric.Namespace,
		"threshold", text(target.Value),
	)
	trigger := map[string]any{"type": cmp.Or(metric.Backend, "prometheus"), "metadata": metadata}
	if ref := m.External.AuthenticationRef; ref != nil {
		set(metadata, "authModes", ref.AuthModes)
		trigger["authenticationRef"] = map[string]any{"name": ref.AuthenticationRef.Name}
	}
	return trigger
}

// set adds the pairs of name and value whose value is not empty.
func set(metadata map[string]any, pairs ...string) map[string]any {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			metadata[pairs[i]] = pairs[i+1]
		}
	}
	return metadata
}

// text returns a quantity as it was written.
func text(quantity any) string {
	if quantity == nil {
		return ""
	}
	return fmt.Sprint(quantity)
}

// HPA returns the predictor's HorizontalPodAutoscaler, for [ClassHPA]: the
// Resource metrics that are named, or one of CPU at 80 % of the request.
func (s *Service) HPA() *autoscalingv2.HorizontalPodAutoscaler {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: object.Owned(s.Object, s.Component(), s.labels(), s.annotations()),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: s.Component(),
			},
			MinReplicas: new(s.minReplicas()),
			MaxReplicas: s.maxReplicas(),
		},
	}
	if scaling := s.Predictor.AutoScaling; scaling != nil {
		hpa.Spec.Behavior = scaling.Behavior
		for _, metric := range scaling.Metrics {
			if metric.Resource != nil && metric.Resource.Target.AverageUtilization != nil {
				hpa.Spec.Metrics = append(hpa.Spec.Metrics,
					utilization(metric.Resource.Name, *metric.Resource.Target.AverageUtilization))
			}
		}
	}
	if len(hpa.Spec.Metrics) == 0 {
		target := int32(defaultUtilization)
		if s.Predictor.ScaleTarget != nil {
			target = *s.Predictor.ScaleTarget
		}
		name := corev1.ResourceName(cmp.Or(s.Predictor.ScaleMetric, string(corev1.ResourceCPU)))
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{utilization(name, target)}
	}
	return hpa
}

func utilization(name corev1.ResourceName, percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: name,
			Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(percent),
			},
		},
	}
}
