package hpa

import (
	"encoding/json"
	"math"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestMilliOfWrittenQuantities: a status holds what the controller made with
// NewMilliQuantity, and is read from text.
func TestMilliOfWrittenQuantities(t *testing.T) {
	for _, milli := range []int64{math.MinInt64, math.MinInt64 + 1, -1_500_000_000_000_000_001, -12_345, -1, 0, 1, 999, 1_500_000_000_000_000_001, math.MaxInt64 - 807, math.MaxInt64} {
		text, err := json.Marshal(resource.NewMilliQuantity(milli, resource.DecimalSI))
		if err != nil {
			t.Fatal(err)
		}
		var read resource.Quantity
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if got := milliOf(read); got != milli {
			t.Errorf("%d is written as %s and read as %d", milli, text, got)
		}
	}
	for text, want := range map[string]int64{"9E": math.MaxInt64, "-9E": math.MinInt64, "1u": 1, "-1u": 0, "1Gi": 1 << 30 * 1000} {
		if got := milliOf(resource.MustParse(text)); got != want {
			t.Errorf("%s is %d, not %d", text, got, want)
		}
	}
}

// TestAverageOfNoReplicas: the status of a sync that found no replica does not
// show the total, whatever number is there, and whatever status.replicas is by
// now (keda#2446 is such a start from zero).
func TestAverageOfNoReplicas(t *testing.T) {
	none := shown("s0-prometheus", "-9223372036854775808m")
	tests := map[string]struct {
		slots   []autoscalingv2.MetricStatus
		status  Range
		version Version
		want    []Range
		divided Range
	}{
		"smallest":                     {[]autoscalingv2.MetricStatus{none}, Exactly(0), Version{1, 37}, []Range{AnyCount()}, Exactly(0)},
		"smallest, replicas by now":    {[]autoscalingv2.MetricStatus{none}, Range{1, 4}, Version{1, 37}, []Range{AnyCount()}, Exactly(0)},
		"smallest, of another version": {[]autoscalingv2.MetricStatus{none}, Range{0, 4}, Version{}, []Range{AnyCount()}, Exactly(0)},
		"largest, on other machines":   {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "9223372036854775807m")}, Range{0, 4}, Version{1, 37}, []Range{AnyCount()}, Range{0, 4}},
		"zero, since 1.38":             {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "0")}, Range{0, 4}, Version{1, 38}, []Range{AnyCount()}, Range{0, 4}},
		"zero, of some":                {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "0")}, Range{1, 4}, Version{1, 38}, []Range{Exactly(0)}, Range{1, 4}},
		"another tells that there are some": {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "0"), shown("s1-prometheus", "1")}, Range{0, 1}, Version{1, 38},
			[]Range{Exactly(0), Exactly(2)}, Exactly(1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := twoMetrics(test.slots...)
			object.Spec.Metrics = object.Spec.Metrics[:len(test.slots)]
			d := Decide(FromObject(object, test.status, Exactly(0), test.version, start))
			if d.Input.Replicas.Status != test.divided {
				t.Errorf("status.replicas was %v", d.Input.Replicas.Status)
			}
			for i, want := range test.want {
				if p := d.Proposals[i]; p.Count != want {
					t.Errorf("metric %d asks for %v (%s)", i, p.Count, p.Reason)
				}
			}
		})
	}
}

// TestHiddenNegative: up to 1.33 a negative total asks for a negative size,
// which is less than zero replicas; beside a failed metric that stops the sync.
func TestHiddenNegative(t *testing.T) {
	for version, want := range map[Version]Blocking{{1, 33}: MaybeBlocked, {1, 34}: NotBlocked} {
		object := twoMetrics(shown("s0-prometheus", "-9223372036854775808m"))
		object.Spec.MinReplicas = new(int32(0))
		in := FromObject(object, Exactly(0), Exactly(0), version, start)
		in.Replicas.Spec = 0
		in.Metrics[1].Seen = Observation{State: Failed, Reason: "FailedGetExternalMetric"}
		in.ScaledToZero, in.Flags.ScaleToZero = true, new(true)
		if got := Decide(in).Blocking; got != want {
			t.Errorf("%s: %s, not %s", version, got, want)
		}
	}
}
