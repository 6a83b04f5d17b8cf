package llmisvc

import (
	"cmp"
	"fmt"
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

const (
	// wvaMetric is the series in which WVA publishes its decisions.
	wvaMetric = "wva_desired_replicas"
	// wvaServer is where KServe's configuration says that series is.
	wvaServer = "http://prometheus.monitoring.svc:9090"
)

// ScaledObject returns a role's ScaledObject, nil where KEDA does not scale it.
// The fields of scaling.keda are copied as they are.
func (s *Service) ScaledObject(r Role) (*unstructured.Unstructured, error) {
	scaling := r.workload.Scaling
	labels, annotations := s.identity(), map[string]string(nil)
	var spec map[string]any
	switch {
	case scaling == nil:
		return nil, nil
	case scaling.KEDA != nil:
		spec = copyJSON(scaling.KEDA)
	case scaling.WVA != nil && scaling.WVA.KEDA != nil:
		spec = copyJSON(scaling.WVA.KEDA)
		spec["triggers"] = []any{s.wvaTrigger(r)}
		labels, annotations = s.wvaMeta(r)
	default:
		return nil, nil
	}
	spec["minReplicaCount"] = int64(scaling.minReplicas())
	spec["maxReplicaCount"] = int64(scaling.MaxReplicas)
	spec["scaleTargetRef"] = map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "name": s.DeploymentName(r),
	}
	meta, err := object.Encode(new(object.Owned(s.Object, s.ScaledObjectName(r), labels, annotations)))
	if err != nil {
		return nil, err
	}
	delete(meta, "creationTimestamp")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1",
		"kind":       "ScaledObject",
		"metadata":   meta,
		"spec":       spec,
	}}, nil
}

// wvaTrigger asks for what WVA has decided; its threshold 1 is no measure of
// load.
func (s *Service) wvaTrigger(r Role) map[string]any {
	return map[string]any{
		"type": "prometheus",
		"name": "wva-desired-replicas",
		"metadata": map[string]any{
			"serverAddress": wvaServer,
			"query": fmt.Sprintf("%s{variant_name=%q,exported_namespace=%q}",
				wvaMetric, s.DeploymentName(r), s.Object.GetNamespace()),
			"threshold": "1",
		},
	}
}

func (s *Service) wvaMeta(r Role) (labels, annotations map[string]string) {
	labels = s.identity()
	labels["inference.optimization/acceleratorName"] = cmp.Or(
		r.workload.Labels["inference.optimization/acceleratorName"], "unknown")
	return labels, map[string]string{
		"llm-d.ai/managed":      "true",
		"llm-d.ai/model-id":     s.Spec.Model.Name,
		"llm-d.ai/variant-cost": cmp.Or(r.workload.Scaling.WVA.VariantCost, "10.0"),
	}
}

// HPA returns the HPA of a role which WVA scales by one, else nil.
func (s *Service) HPA(r Role) *autoscalingv2.HorizontalPodAutoscaler {
	scaling := r.workload.Scaling
	if scaling == nil || scaling.WVA == nil || scaling.WVA.HPA == nil {
		return nil
	}
	labels, annotations := s.wvaMeta(r)
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: object.Owned(s.Object, s.HPAName(r), labels, annotations),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: s.DeploymentName(r),
			},
			MinReplicas: new(scaling.minReplicas()),
			MaxReplicas: scaling.MaxReplicas,
			Behavior:    scaling.WVA.HPA.Behavior,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ExternalMetricSourceType,
				External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{
						Name: wvaMetric,
						Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
							"variant_name": s.DeploymentName(r), "exported_namespace": s.Object.GetNamespace(),
						}},
					},
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.ValueMetricType, Value: resource.NewQuantity(1, resource.DecimalSI),
					},
				},
			}},
		},
	}
}

func (s *Scaling) minReplicas() int32 {
	if s.MinReplicas != nil {
		return *s.MinReplicas
	}
	return 1
}

// copyJSON copies a decoded JSON value; numbers that are whole become integers
// again, which is how the API server returns them.
func copyJSON(value map[string]any) map[string]any {
	copied := maps.Clone(value)
	for key, field := range copied {
		copied[key] = whole(field)
	}
	return runtime.DeepCopyJSON(copied)
}

func whole(value any) any {
	switch value := value.(type) {
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	case map[string]any:
		return copyJSON(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = whole(item)
		}
		return list
	}
	return value
}
