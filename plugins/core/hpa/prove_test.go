package hpa

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// TestProvenByStatus: what the size and the conditions prove of a sync whose
// value is hidden (status.replicas was 0), or whose memory is.
func TestProvenByStatus(t *testing.T) {
	message := "the HPA was able to successfully calculate a replica count from external metric s0-prometheus(nil)"
	type outcome struct {
		raw, stabilized Range
		up              int32
		able            AbleReason
	}
	tests := map[string]struct {
		average       string
		desired       int32
		able, limited string
		behavior      bool
		want          outcome
	}{
		"ready and in range: the raw size is the size": {"-9223372036854775808m", 5, "ReadyForNewScale", "DesiredWithinRange", false,
			outcome{Exactly(5), Exactly(5), 10, ReadyForNewScale}},
		"limited: above it": {"-9223372036854775808m", 10, "SucceededRescale", "ScaleUpLimit", true,
			outcome{Range{11, AnyCount().High}, Range{11, AnyCount().High}, 10, ""}},
		"a window that raises, written over": {"400m", 6, "SucceededRescale", "DesiredWithinRange", false,
			outcome{Exactly(1), Exactly(6), 10, ScaleDownStabilized}},
		"a limit that allows nothing": {"9", 5, "ReadyForNewScale", "ScaleUpLimit", true,
			outcome{Exactly(23), Exactly(23), 5, ReadyForNewScale}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := twoMetrics(shown("s0-prometheus", test.average))
			object.Spec.Metrics, object.Spec.MaxReplicas = object.Spec.Metrics[:1], 40
			object.Status.CurrentReplicas, object.Status.DesiredReplicas = 5, test.desired
			if test.behavior {
				object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
			}
			object.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
				condition(autoscalingv2.AbleToScale, "True", test.able, ""),
				condition(autoscalingv2.ScalingActive, "True", "ValidMetricFound", message),
				condition(autoscalingv2.ScalingLimited, "True", test.limited, ""),
			}
			check := Compare(Decide(FromObject(object, Exactly(5), Exactly(5), Version{1, 37}, start)), ObservedIn(object))
			got := outcome{check.Raw, check.Stabilized, check.Up.High, check.Able}
			if got != test.want || !check.Agrees() {
				t.Errorf("got %+v, want %+v; %v", got, test.want, check.Disagreements)
			}
		})
	}
}

// TestContradictingStatus: no raw size leads to both conditions and this size.
func TestContradictingStatus(t *testing.T) {
	object := twoMetrics(shown("s0-prometheus", "400m"))
	object.Spec.Metrics = object.Spec.Metrics[:1]
	object.Status.CurrentReplicas, object.Status.DesiredReplicas = 5, 5
	object.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		condition(autoscalingv2.AbleToScale, "True", "ReadyForNewScale", ""),
		condition(autoscalingv2.ScalingActive, "True", "ValidMetricFound", ""),
		condition(autoscalingv2.ScalingLimited, "False", "DesiredWithinRange", ""),
	}
	check := Compare(Decide(FromObject(object, Exactly(5), Exactly(5), Version{1, 37}, start)), ObservedIn(object))
	if check.Agrees() || check.Disagreements[0].What != "steps" {
		t.Errorf("got %+v", check)
	}
}

// TestMaximumHidesPolicies: at the maximum, policies that allow less than the
// current size allow that, so TooManyReplicas says nothing of them.
func TestMaximumHidesPolicies(t *testing.T) {
	object := twoMetrics(shown("s0-prometheus", "9"))
	object.Spec.Metrics, object.Spec.MaxReplicas = object.Spec.Metrics[:1], 5
	object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	object.Status.CurrentReplicas, object.Status.DesiredReplicas = 5, 5
	object.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		condition(autoscalingv2.AbleToScale, "True", "ReadyForNewScale", ""),
		condition(autoscalingv2.ScalingActive, "True", "ValidMetricFound", ""),
		condition(autoscalingv2.ScalingLimited, "True", "TooManyReplicas", ""),
	}
	check := Compare(Decide(FromObject(object, Exactly(5), Exactly(5), Version{1, 37}, start)), ObservedIn(object))
	if !check.Up.Contains(2) || check.Raw != Exactly(23) || !check.Agrees() {
		t.Errorf("got %+v", check)
	}
}
