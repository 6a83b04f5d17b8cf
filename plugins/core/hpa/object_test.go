package hpa

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func condition(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string) autoscalingv2.HorizontalPodAutoscalerCondition {
	return autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

func twoMetrics(current ...autoscalingv2.MetricStatus) *autoscalingv2.HorizontalPodAutoscaler {
	spec := func(name, target string) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: name},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr(resource.MustParse(target))},
		}}
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		Spec:   autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 6, Metrics: []autoscalingv2.MetricSpec{spec("s0-prometheus", "2"), spec("s1-prometheus", "750m")}},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 2, CurrentMetrics: current},
	}
}

func shown(name, average string) autoscalingv2.MetricStatus {
	return autoscalingv2.MetricStatus{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricStatus{
		Metric: autoscalingv2.MetricIdentifier{Name: name}, Current: autoscalingv2.MetricValueStatus{AverageValue: ptr(resource.MustParse(average))}}}
}

func TestFromObjectReadsSlots(t *testing.T) {
	tests := map[string]struct {
		current []autoscalingv2.MetricStatus
		active  string
		want    []State
	}{
		"both":                 {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "3"), shown("s1-prometheus", "1")}, "ValidMetricFound", []State{Seen, Seen}},
		"a hole is a failure":  {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "3"), {}}, "ValidMetricFound", []State{Seen, Failed}},
		"all holes":            {[]autoscalingv2.MetricStatus{{}, {}}, "FailedGetExternalMetric", []State{Failed, Failed}},
		"none and failing":     {nil, "FailedGetExternalMetric", []State{Failed, Failed}},
		"none and disabled":    {nil, "ScalingDisabled", []State{Unknown, Unknown}},
		"other name":           {[]autoscalingv2.MetricStatus{shown("s9-prometheus", "3"), shown("s1-prometheus", "1")}, "ValidMetricFound", []State{Unknown, Seen}},
		"fewer than the spec":  {[]autoscalingv2.MetricStatus{shown("s0-prometheus", "3")}, "ValidMetricFound", []State{Seen, Unknown}},
		"other type in a slot": {[]autoscalingv2.MetricStatus{{Type: "Pods"}, shown("s1-prometheus", "1")}, "ValidMetricFound", []State{Unknown, Seen}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := twoMetrics(test.current...)
			object.Status.Conditions = append(object.Status.Conditions, condition(autoscalingv2.ScalingActive, "True", test.active, ""))
			in := FromObject(object, Exactly(2), Exactly(2), Version{1, 37}, start)
			got := []State{in.Metrics[0].Seen.State, in.Metrics[1].Seen.State}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBehaviorDefaults(t *testing.T) {
	quarter := 15 * time.Second
	got := behaviorOf(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{Tolerance: ptr(resource.MustParse("50m"))}})
	want := &Behavior{
		Up:   Rules{Window: ptr(time.Duration(0)), Select: SelectMax, Policies: []Policy{{PodsPolicy, 4, quarter}, {PercentPolicy, 100, quarter}}},
		Down: Rules{Select: SelectMax, Policies: []Policy{{PercentPolicy, 100, quarter}}, Tolerance: ptr(0.05)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if behaviorOf(nil) != nil {
		t.Error("no behavior is another path, not an empty one")
	}
}

// TestRounding: the status shows averages rounded up; the total behind one is
// bounded, and what it asks for with it.
func TestRounding(t *testing.T) {
	in := with(at(6), func(in *Input) {
		in.Metrics = []Metric{{Type: External, Target: AverageValue, TargetMilli: 2000, Seen: Observation{State: Seen, Average: ptr(int64(667))}}}
	})
	p := Decide(in).Proposals[0]
	if *p.TotalLow != 3997 || *p.TotalHigh != 4002 || p.Count != (Range{2, 3}) {
		t.Errorf("got %d to %d, %v", *p.TotalLow, *p.TotalHigh, p.Count)
	}
}

func TestKnownRescales(t *testing.T) {
	scaled := func(ago time.Duration, able string) Observed {
		at := start.Add(-ago)
		return Observed{LastScale: &at, Able: able}
	}
	event := func(ago time.Duration, size int32) SizeEvent {
		return SizeEvent{Time: start.Add(-ago), Count: 1, Size: size, Reason: "external metric s0-prometheus above target"}
	}
	tests := map[string]struct {
		events   []SizeEvent
		observed Observed
		want     *Rescales
	}{
		"never scaled":              {nil, Observed{}, &Rescales{}},
		"longer ago than a period":  {nil, scaled(2*time.Minute, ""), &Rescales{}},
		"recent, events unreadable": {nil, scaled(20*time.Second, ""), nil},
		"recent, event lost":        {[]SizeEvent{event(50*time.Second, 2)}, scaled(20*time.Second, ""), nil},
		"bounded by the policy":     {[]SizeEvent{event(20*time.Second, 4), event(5*time.Minute, 2)}, scaled(20*time.Second, ""), &Rescales{Up: []Rescale{{Time: start.Add(-20 * time.Second), Delta: Range{1, 2}}}}},
		"from the minimum":          {[]SizeEvent{event(20*time.Second, 2)}, scaled(20*time.Second, ""), &Rescales{Up: []Rescale{{Time: start.Add(-20 * time.Second), Delta: Exactly(1)}}}},
		"the sync's own":            {[]SizeEvent{event(0, 4)}, scaled(0, "SucceededRescale"), &Rescales{}},
		"merged events":             {[]SizeEvent{{Time: start.Add(-20 * time.Second), Count: 2, Size: 4}}, scaled(20*time.Second, ""), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(4)
			in.Behavior, in.MemorySince, in.SpecSince = seeds(), ptr(start.Add(-time.Hour)), ptr(start.Add(-time.Hour))
			if diff := cmp.Diff(test.want, in.KnownRescales(test.events, test.observed)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestForgottenRescales: a controller that took over knows nothing of what the
// one before it did.
func TestForgottenRescales(t *testing.T) {
	last := start.Add(-20 * time.Second)
	events := []SizeEvent{{Time: last, Count: 1, Size: 4, Reason: "external metric s0-prometheus above target"}}
	tests := map[string]struct {
		since *time.Time
		want  *Rescales
	}{
		"not known":          {nil, &Rescales{Up: []Rescale{{Time: last, Delta: Range{0, 2}}}}},
		"remembered":         {ptr(start.Add(-time.Minute)), &Rescales{Up: []Rescale{{Time: last, Delta: Range{1, 2}}}}},
		"forgotten":          {ptr(start.Add(-10 * time.Second)), &Rescales{}},
		"in the same second": {ptr(last), &Rescales{Up: []Rescale{{Time: last, Delta: Range{0, 2}}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(4)
			in.Behavior, in.MemorySince, in.SpecSince = seeds(), test.since, ptr(start.Add(-time.Hour))
			if diff := cmp.Diff(test.want, in.KnownRescales(events, Observed{LastScale: &last})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	message := "the HPA was able to successfully calculate a replica count from external metric s0-prometheus(&LabelSelector{})"
	status := func(desired int32, able, limited string) *autoscalingv2.HorizontalPodAutoscaler {
		object := twoMetrics(shown("s0-prometheus", "5500m"), shown("s1-prometheus", "400m"))
		object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr(int32(60)), Policies: []autoscalingv2.HPAScalingPolicy{{Type: "Percent", Value: 100, PeriodSeconds: 30}}},
		}
		object.Status.DesiredReplicas = desired
		object.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
			condition(autoscalingv2.AbleToScale, "True", able, ""),
			condition(autoscalingv2.ScalingActive, "True", "ValidMetricFound", message),
			condition(autoscalingv2.ScalingLimited, "True", limited, ""),
		}
		return object
	}
	tests := map[string]struct {
		object     *autoscalingv2.HorizontalPodAutoscaler
		stabilized Range
		what       []string
	}{
		"held by the window":       {status(2, "ScaleUpStabilized", "DesiredWithinRange"), Exactly(2), nil},
		"held by the limit":        {status(2, "ScaleUpStabilized", "ScaleUpLimit"), Range{3, 5}, nil},
		"ready proves the raw one": {status(4, "ReadyForNewScale", "ScaleUpLimit"), Exactly(6), nil},
		"more than any proposal":   {status(7, "ReadyForNewScale", "DesiredWithinRange"), Range{2, 6}, []string{"desired_replicas"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := FromObject(test.object, Exactly(2), Exactly(2), Version{1, 37}, start)
			check := Compare(Decide(in), ObservedIn(test.object))
			var what []string
			for _, d := range check.Disagreements {
				what = append(what, d.What)
			}
			if diff := cmp.Diff(test.what, what); diff != "" {
				t.Error(diff)
			}
			if check.Stabilized != test.stabilized || check.Winner != 0 {
				t.Errorf("got stabilized %v, winner %d", check.Stabilized, check.Winner)
			}
		})
	}
}

func TestStatusTime(t *testing.T) {
	object := twoMetrics()
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "status", Time: &metav1.Time{Time: start}}, {Time: &metav1.Time{Time: start.Add(time.Hour)}}}
	if got := ObservedIn(object); !got.StatusTime().Equal(start) || !got.Newest().Equal(start) {
		t.Errorf("got %v, %v", got.StatusTime(), got.Newest())
	}
}

func TestParseVersion(t *testing.T) {
	tests := map[string]struct {
		want Version
		ok   bool
	}{
		"v1.37.2": {Version{1, 37}, true}, "1.35+": {Version{1, 35}, true}, "v1.31.4-eks-1": {Version{1, 31}, true},
		"": {}, "v1": {}, "x.y": {}, "1.x": {},
	}
	for text, test := range tests {
		if got, ok := ParseVersion(text); ok != test.ok || (ok && got != test.want) {
			t.Errorf("%q: got %v %v", text, got, ok)
		}
	}
}

// TestRescalesAcrossEdits: what was noted before an edit of the spec followed
// rules that nobody can read any more.
func TestRescalesAcrossEdits(t *testing.T) {
	last := start.Add(-20 * time.Second)
	up := []SizeEvent{{Time: last, Count: 1, Size: 4, Reason: "external metric s0-prometheus above target"}}
	down := []SizeEvent{{Time: last, Count: 1, Size: 4, Reason: "All metrics below target"}}
	tests := map[string]struct {
		since  *time.Time
		events []SizeEvent
		want   *Rescales
	}{
		"edited before it":      {ptr(start.Add(-time.Minute)), up, &Rescales{Up: []Rescale{{Time: last, Delta: Range{1, 2}}}}},
		"edited after it":       {ptr(start.Add(-10 * time.Second)), up, &Rescales{Up: []Rescale{{Time: last, Delta: Range{0, 4}}}}},
		"edited after it, down": {ptr(start.Add(-10 * time.Second)), down, &Rescales{Down: []Rescale{{Time: last, Delta: Range{0, AnyCount().High}}}}},
		"not known":             {nil, up, &Rescales{Up: []Rescale{{Time: last, Delta: Range{0, 4}}}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(4)
			in.Behavior, in.MemorySince, in.SpecSince = seeds(), ptr(start.Add(-time.Hour)), test.since
			if diff := cmp.Diff(test.want, in.KnownRescales(test.events, Observed{LastScale: &last})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDroppedEvents: client-go lets through 25 events of an object and then one
// every five minutes; where that may have been so, the rescales are not known.
func TestDroppedEvents(t *testing.T) {
	every := func(step time.Duration, count int) (events []SizeEvent) {
		for i := range count {
			events = append(events, SizeEvent{Time: start.Add(-20*time.Second - time.Duration(i)*step), Count: 1, Size: 4, Reason: "x above target"})
		}
		return events
	}
	tests := map[string]struct {
		events []SizeEvent
		known  bool
	}{
		"a few at once":                  {every(30*time.Second, 4), true},
		"every ten minutes for an hour":  {every(10*time.Minute, 6), true},
		"every five minutes for an hour": {every(5*time.Minute, 12), false},
		"twelve within six minutes":      {every(30*time.Second, 12), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(4)
			in.Behavior, in.MemorySince, in.SpecSince = seeds(), ptr(start.Add(-2*time.Hour)), ptr(start.Add(-2*time.Hour))
			last := start.Add(-20 * time.Second)
			if got := in.KnownRescales(test.events, Observed{LastScale: &last}); (got != nil) != test.known {
				t.Errorf("got %+v", got)
			}
		})
	}
}
