package oracle

import (
	"fmt"
	"math/rand/v2"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// generator draws HPAs and worlds that stress the edges: values around the
// tolerance, sizes around the limits, small and odd policies.
type generator struct{ *rand.Rand }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) hpa() *autoscalingv2.HorizontalPodAutoscaler {
	low := int32(1 + g.IntN(3))
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "h", Namespace: namespace},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "x", APIVersion: "apps/v1"},
			MinReplicas:    &low,
			MaxReplicas:    low + int32(g.IntN(20)),
		},
	}
	for i := range 1 + g.IntN(4) {
		hpa.Spec.Metrics = append(hpa.Spec.Metrics, g.metric(i))
	}
	if g.chance(70) {
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		if g.chance(80) {
			hpa.Spec.Behavior.ScaleUp = g.rules()
		}
		if g.chance(80) {
			hpa.Spec.Behavior.ScaleDown = g.rules()
		}
	}
	legacyscheme.Scheme.Default(hpa)
	return hpa
}

func (g generator) metric(i int) autoscalingv2.MetricSpec {
	targets := []string{"2", "750m", "30", "1", "4", "1500m", "3", "7", "1m", "90"}
	quantity := resource.MustParse(targets[g.IntN(len(targets))])
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &quantity}
	if g.chance(35) {
		target = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &quantity}
	}
	name := autoscalingv2.MetricIdentifier{Name: fmt.Sprintf("s%d-prometheus", i)}
	if g.chance(25) {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "x", APIVersion: "v1"}, Metric: name, Target: target}}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: name, Target: target}}
}

func (g generator) rules() *autoscalingv2.HPAScalingRules {
	rules := &autoscalingv2.HPAScalingRules{}
	if g.chance(70) {
		window := []int32{0, 15, 30, 60, 120, 300}[g.IntN(6)]
		rules.StabilizationWindowSeconds = &window
	}
	if g.chance(60) {
		selects := []autoscalingv2.ScalingPolicySelect{autoscalingv2.MaxChangePolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect}
		policy := selects[g.IntN(len(selects))]
		rules.SelectPolicy = &policy
	}
	if g.chance(75) {
		for range 1 + g.IntN(2) {
			policy := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: int32(1 + g.IntN(5)), PeriodSeconds: []int32{15, 30, 60, 90, 300}[g.IntN(5)]}
			if g.chance(50) {
				policy.Type, policy.Value = autoscalingv2.PercentScalingPolicy, []int32{10, 25, 50, 80, 90, 100, 300}[g.IntN(7)]
			}
			rules.Policies = append(rules.Policies, policy)
		}
	}
	if g.chance(20) {
		tolerance := resource.MustParse([]string{"0", "50m", "200m", "1"}[g.IntN(4)])
		rules.Tolerance = &tolerance
	}
	return rules
}

// step changes the world between two syncs.
func (g generator) step(w *world, hpa *autoscalingv2.HorizontalPodAutoscaler) (ready int) {
	if g.chance(5) {
		w.spec = int32(g.IntN(int(hpa.Spec.MaxReplicas) + 3))
	}
	w.status = w.spec
	if g.chance(15) {
		w.status = max(0, w.spec+int32(g.IntN(5))-2)
	}
	if w.totals == nil || g.chance(60) {
		w.totals = map[string]int64{}
		for _, metric := range hpa.Spec.Metrics {
			if name, total := g.total(w, metric); !g.chance(12) {
				w.totals[name] = total
			}
		}
	}
	if g.chance(20) {
		return g.IntN(podCount + 1)
	}
	return min(int(w.spec), podCount)
}

// total is near the target, the edge of the tolerance, or anywhere.
func (g generator) total(w *world, metric autoscalingv2.MetricSpec) (string, int64) {
	var name string
	var target autoscalingv2.MetricTarget
	if metric.External != nil {
		name, target = metric.External.Metric.Name, metric.External.Target
	} else {
		name, target = metric.Object.Metric.Name, metric.Object.Target
	}
	unit := int64(0)
	if target.AverageValue != nil {
		unit = target.AverageValue.MilliValue() * int64(max(w.spec, 1))
	} else {
		unit = target.Value.MilliValue()
	}
	switch g.IntN(5) {
	case 0:
		return name, 0
	case 1:
		return name, unit
	case 2:
		return name, unit*11/10 + int64(g.IntN(3)) - 1
	case 3:
		return name, unit*9/10 + int64(g.IntN(3)) - 1
	}
	return name, int64(g.Float64() * 3 * float64(unit))
}
