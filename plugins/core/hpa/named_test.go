package hpa

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestWinner: the condition names the winner in words that differ by type.
func TestWinner(t *testing.T) {
	container := func(name string) Metric {
		return Metric{Type: ContainerResource, Name: "cpu", Container: name, Target: Utilization}
	}
	metrics := []Metric{
		{Type: External, Name: "s0-prometheus", Target: AverageValue},
		{Type: External, Name: "s0-prometheus-2", Target: AverageValue},
		{Type: Pods, Name: "requests", Target: AverageValue},
		{Type: Resource, Name: "cpu", Target: Utilization},
		{Type: Resource, Name: "cpu", Target: AverageValue},
		container("main"), container("proxy"),
		{Type: Object, Name: "hits", Object: "Service/x", Target: Value},
		{Type: Object, Name: "rate", Object: "Service/x", Target: AverageValue},
	}
	tests := map[string]int{
		"external metric s0-prometheus(nil)":                0,
		"external metric s0-prometheus-2(&LabelSelector{})": 1,
		"pods metric requests":                              2,
		"cpu resource utilization (percentage of request)":  3,
		"cpu resource": 4,
		"cpu container resource utilization (percentage of request)": NoWinner,
		"Service metric hits":       7,
		"external metric rate(nil)": 8,
		"Service metric rate(nil)":  8,
		"something else":            NoWinner,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			o := Observed{Active: "ValidMetricFound", ActiveMessage: "the HPA was able to successfully calculate a replica count from " + text}
			if got := o.Winner(metrics); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}

// TestReadsPodMetrics: of a resource, too, an average value goes before a
// utilization.
func TestReadsPodMetrics(t *testing.T) {
	percent, average := int32(80), resource.MustParse("500m")
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
	both := target
	both.AverageValue = &average
	tests := map[string]struct {
		spec autoscalingv2.MetricSpec
		want Metric
	}{
		"utilization": {autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: target}},
			Metric{Type: Resource, Name: "cpu", Target: Utilization, TargetMilli: 80}},
		"both": {autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu", Target: both}},
			Metric{Type: Resource, Name: "cpu", Target: AverageValue, TargetMilli: 500}},
		"container": {autoscalingv2.MetricSpec{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: "cpu", Container: "main", Target: target}},
			Metric{Type: ContainerResource, Name: "cpu", Container: "main", Target: Utilization, TargetMilli: 80}},
		"pods": {autoscalingv2.MetricSpec{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "requests"}, Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &average}}},
			Metric{Type: Pods, Name: "requests", Target: AverageValue, TargetMilli: 500}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := metricOf(test.spec)
			got.Seen = Observation{}
			if got.Type != test.want.Type || got.Name != test.want.Name || got.Container != test.want.Container || got.Target != test.want.Target || got.TargetMilli != test.want.TargetMilli {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
