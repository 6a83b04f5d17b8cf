package explain

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// plannedHPA is the HPA that KEDA would make of a ScaledObject: what is asked
// about a manifest, or about an object that is paused, is asked about this. Its
// status is empty: no metric was seen.
func plannedHPA(link chain.Chain) *autoscalingv2.HorizontalPodAutoscaler {
	so := *link.ScaledObject
	version, _ := kedaVersionOf(link)
	low := so.HPAMin()
	planned := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: so.HPAName(), Namespace: so.Metadata.Namespace},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &low, MaxReplicas: so.Max()},
		Status:     autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: plannedSize(link)},
	}
	if advanced := so.Spec.Advanced; advanced != nil && advanced.HPA != nil {
		planned.Spec.Behavior = advanced.HPA.Behavior.DeepCopy()
	}
	planned.Spec.Behavior = halfPaused(planned.Spec.Behavior, so.Pause())
	for _, metric := range so.Metrics(version) {
		planned.Spec.Metrics = append(planned.Spec.Metrics, plannedMetric(so, metric))
	}
	return planned
}

// plannedInput is the first sync of an HPA that is not there yet: it sees no
// metric, and remembers the size that it finds.
func plannedInput(link chain.Chain, version hpa.Version, at moment, counts hpa.Range) hpa.Input {
	object := plannedHPA(link)
	object.Status.CurrentReplicas = counts.Low
	in := hpa.FromObject(object, counts, counts, version, at.time)
	in.History = &hpa.History{Recommendations: []hpa.Recommendation{{Time: at.time, Count: counts.Low}}}
	return in
}

// plannedSize is the workload's, else the smallest that an HPA leaves alone.
func plannedSize(link chain.Chain) int32 {
	if link.Workload != nil {
		return link.Workload.Spec
	}
	return link.ScaledObject.HPAMin()
}

// halfPaused switches the steps of a direction off, as the annotations
// paused-scale-in and paused-scale-out do.
func halfPaused(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, pause keda.Pause) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	if !pause.In && !pause.Out {
		return behavior
	}
	if behavior == nil {
		behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	}
	off := autoscalingv2.DisabledPolicySelect
	if pause.In {
		if behavior.ScaleDown == nil {
			behavior.ScaleDown = &autoscalingv2.HPAScalingRules{}
		}
		behavior.ScaleDown.SelectPolicy = &off
	}
	if pause.Out {
		if behavior.ScaleUp == nil {
			behavior.ScaleUp = &autoscalingv2.HPAScalingRules{}
		}
		behavior.ScaleUp.SelectPolicy = &off
	}
	return behavior
}

func plannedMetric(so keda.ScaledObject, metric keda.Metric) autoscalingv2.MetricSpec {
	milli := int64(0)
	if metric.TargetMilli != nil {
		milli = *metric.TargetMilli
	}
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.MetricTargetType(metric.TargetType)}
	switch metric.TargetType {
	case keda.TargetUtilization:
		percent := int32(milli)
		target.AverageUtilization = &percent
	case keda.TargetValue:
		target.Value = resource.NewMilliQuantity(milli, resource.DecimalSI)
	default:
		target.AverageValue = resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	spec := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(metric.Source)}
	switch metric.Source {
	case keda.SourceContainerResource:
		spec.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceName(metric.Name), Container: metric.Container, Target: target}
	case keda.SourceResource:
		spec.Resource = &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceName(metric.Name), Target: target}
	default:
		name := metric.Name
		if name == "" {
			// Only KEDA's status tells the rest of it; the number tells the trigger.
			name = fmt.Sprintf("s%d-%s", metric.Trigger, so.Spec.Triggers[metric.Trigger].Type)
		}
		spec.External = &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: name}, Target: target}
	}
	return spec
}
