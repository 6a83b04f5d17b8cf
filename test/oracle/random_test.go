package oracle

import (
	"fmt"
	"math/rand/v2"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// generator draws HPAs and worlds that stress the edges: values around the
// tolerance, sizes around the limits, small and odd policies.
type generator struct{ *rand.Rand }

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g generator) hpa() *autoscalingv2.HorizontalPodAutoscaler {
	low := int32(1 + g.IntN(3))
	object := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "h", Namespace: namespace, ManagedFields: written(time.Now())},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "x", APIVersion: "apps/v1"},
			MinReplicas:    &low,
			MaxReplicas:    low + int32(g.IntN(20)),
		},
	}
	if g.chance(5) {
		low = 0
	}
	for i := range 1 + g.IntN(4) {
		object.Spec.Metrics = append(object.Spec.Metrics, g.metric(i))
	}
	if g.chance(70) {
		object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		if g.chance(80) {
			object.Spec.Behavior.ScaleUp = g.rules()
		}
		if g.chance(80) {
			object.Spec.Behavior.ScaleDown = g.rules()
		}
	}
	legacyscheme.Scheme.Default(object)
	return object
}

func (g generator) metric(i int) autoscalingv2.MetricSpec {
	if g.chance(55) {
		return g.podMetric(i)
	}
	quantity := resource.MustParse(pick(g, "2", "750m", "30", "1", "4", "1500m", "3", "7", "1m", "90"))
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

// podMetric is of one of the three types that pods have samples of.
func (g generator) podMetric(i int) autoscalingv2.MetricSpec {
	name := pick(g, corev1.ResourceCPU, corev1.ResourceCPU, corev1.ResourceMemory)
	average := resource.MustParse(pick(g, "100m", "333m", "2", "700m", "1m"))
	if name == corev1.ResourceMemory {
		average = resource.MustParse(pick(g, "1Gi", "700Mi"))
	}
	plain := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &average}
	target := plain
	if g.chance(65) {
		percent := pick[int32](g, 80, 50, 5, 100, 130, 66)
		target = autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	}
	switch g.IntN(4) {
	case 0:
		metric := autoscalingv2.MetricIdentifier{Name: fmt.Sprintf("requests_%d", i)}
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: metric, Target: plain}}
	case 1:
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: name, Container: pick(g, "main", "main", "proxy", "init-0"), Target: target}}
	}
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: name, Target: target}}
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

// flags are the defaults, or not.
func (g generator) flags() flags {
	f := flags{tolerance: 0.1, downscale: 300 * time.Second, initialization: 300 * time.Second, readyDelay: 30 * time.Second}
	if g.chance(20) {
		f.tolerance = pick(g, 0, 0.05, 0.2)
		f.downscale = pick(g, 0, time.Minute, 5*time.Minute)
		f.initialization = pick(g, 0, time.Minute, 5*time.Minute)
		f.readyDelay = pick(g, 0, 10*time.Second, time.Minute)
	}
	return f
}

// step changes the situation before the sync at a time.
func (g generator) step(w *world, m mood, object *autoscalingv2.HorizontalPodAutoscaler, at time.Time) {
	w.noScale, w.noUpdate = g.chance(2), g.chance(3)
	w.rival = nil
	if g.chance(3) {
		size := int32(g.IntN(int(object.Spec.MaxReplicas) + 1))
		w.rival = &size
	}
	w.selector = selector
	if g.chance(2) {
		w.selector = pick(g, "", "app in (")
	}
	if g.chance(5) {
		w.spec = int32(g.IntN(int(object.Spec.MaxReplicas) + 3))
	}
	w.status = w.spec
	if g.chance(15) {
		w.status = max(0, w.spec+int32(g.IntN(5))-2)
	}
	if g.chance(4) {
		// A quota that lets no pod start, or a workload that was just scaled up
		// from zero.
		w.status = 0
	}
	fresh := w.totals == nil || g.chance(60)
	if fresh || g.chance(30) {
		w.pods = g.pods(m, w, at)
	}
	if !fresh {
		return
	}
	w.totals, w.samples = map[string]int64{}, map[string]metrics.PodMetricsInfo{}
	for _, metric := range metricsOf(object) {
		switch {
		case g.chance(12):
		case metric.Type == hpa.External || metric.Type == hpa.Object:
			w.totals[metric.Name] = g.total(w, metric)
		default:
			w.samples[sampleKey(metric.Name, metric.Container)] = g.samples(m, metric, w.pods, at)
		}
	}
}

// metricsOf reads the metrics as the model does.
func metricsOf(object *autoscalingv2.HorizontalPodAutoscaler) []hpa.Metric {
	return hpa.FromObject(object, hpa.Exactly(0), hpa.Exactly(0), hpa.Version{}, time.Time{}).Metrics
}

// total is near the target, the edge of the tolerance, or anywhere.
func (g generator) total(w *world, metric hpa.Metric) int64 {
	unit := metric.TargetMilli
	if metric.Target == hpa.AverageValue {
		unit *= int64(max(w.spec, 1))
	}
	switch g.IntN(5) {
	case 0:
		return 0
	case 1:
		return unit
	case 2:
		return unit*11/10 + int64(g.IntN(3)) - 1
	case 3:
		return unit*9/10 + int64(g.IntN(3)) - 1
	}
	return int64(g.Float64() * 3 * float64(unit))
}
