package keda

import (
	"fmt"
	"testing"
)

// one is a ScaledObject with one trigger, a fallback, and failures so far.
func one(t *testing.T, trigger, fallback, advanced string, failures int) ScaledObject {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"spec":{"fallback":%s,"advanced":%s,"triggers":[{"type":"prometheus","name":"a",%s}]},
		"status":{"health":{"s0-prometheus":{"numberOfFailures":%d,"status":"Failing"}}}}`, fallback, advanced, trigger, failures))
}

// external is the metric of the first trigger, beside a composite one too.
func external(so ScaledObject, v Version) Metric {
	so.Spec.Advanced = nil
	return so.Metrics(v)[0]
}

func TestObserveFallback(t *testing.T) {
	average, value := `"metadata":{"threshold":"2"}`, `"metricType":"Value","metadata":{"threshold":"2"}`
	half := `"metadata":{"threshold":"0.5"}`
	now := Sizes{Current: 4, Ready: 2}
	tests := map[string]struct {
		version                     Version
		trigger, fallback, advanced string
		failures                    int
		reason                      ObservedReason
		milli                       int64
		count                       int32
	}{
		"none":                       {Newest(), average, `null`, `null`, 9, ObservedNoFallback, 0, -1},
		"threshold 3, third failure": {Newest(), average, `{"failureThreshold":3,"replicas":6}`, `null`, 2, ObservedCounting, 0, 3},
		"threshold 3, fourth":        {Newest(), average, `{"failureThreshold":3,"replicas":6}`, `null`, 3, ObservedFallback, 12000, 4},
		"threshold 0, first":         {Newest(), average, `{"failureThreshold":0,"replicas":6}`, `null`, 0, ObservedFallback, 12000, 1},
		"current":                    {Newest(), average, `{"replicas":6,"behavior":"currentReplicas"}`, `null`, 0, ObservedFallback, 8000, 1},
		"if higher":                  {Newest(), average, `{"replicas":6,"behavior":"currentReplicasIfHigher"}`, `null`, 0, ObservedFallback, 12000, 1},
		"if lower":                   {Newest(), average, `{"replicas":6,"behavior":"currentReplicasIfLower"}`, `null`, 0, ObservedFallback, 8000, 1},
		"behaviors came in 2.17":     {Version{2, 16, 1}, average, `{"replicas":6,"behavior":"currentReplicas"}`, `null`, 0, ObservedFallback, 12000, 1},
		"0.5 was 0":                  {Version{2, 16, 1}, half, `{"replicas":6}`, `null`, 0, ObservedFallback, 0, 1},
		"0.5 was 0 in 2.17":          {Version{2, 17, 2}, half, `{"replicas":6}`, `null`, 0, ObservedFallback, 0, 1},
		"0.5":                        {Newest(), half, `{"replicas":6}`, `null`, 0, ObservedFallback, 3000, 1},
		// keda#5514: a fallback for Value came in 2.18.
		"keda#5514 before 2.18":          {Version{2, 17, 2}, value, `{"replicas":6}`, `null`, 0, ObservedNoFallback, 0, -1},
		"keda#5514 since 2.18":           {Version{2, 18, 0}, value, `{"replicas":6}`, `null`, 0, ObservedFallback, 6000, 1},
		"negative":                       {Newest(), average, `{"replicas":-1}`, `null`, 0, ObservedNoFallback, 0, -1},
		"modifiers, their target":        {Newest(), average, `{"replicas":6}`, `{"scalingModifiers":{"formula":"a","target":"10"}}`, 0, ObservedFallback, 60000, 1},
		"modifiers, silently off":        {Newest(), average, `{"replicas":6}`, `{"scalingModifiers":{"formula":"a","target":"0.5"}}`, 0, ObservedNoFallback, 0, -1},
		"modifiers, left to the formula": {Newest(), average, `{"replicas":6,"behavior":"scalingModifiers"}`, `{"scalingModifiers":{"formula":"a ?? 1","target":"1"}}`, 0, ObservedNil, -1000, 1},
		"modifiers of type Value, 2.17":  {Version{2, 17, 2}, average, `{"replicas":6}`, `{"scalingModifiers":{"formula":"a","target":"1","metricType":"Value"}}`, 0, ObservedNoFallback, 0, -1},
		"a trigger of type Value, 2.17":  {Version{2, 17, 2}, value, `{"replicas":6}`, `{"scalingModifiers":{"formula":"a","target":"1"}}`, 0, ObservedFallback, 6000, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := one(t, test.trigger, test.fallback, test.advanced, test.failures)
			got := so.Observe(test.version, external(so, test.version), Reading{Failure: QueryRefused}, now)
			count := int32(-1)
			if got.Failures != nil {
				count = *got.Failures
			}
			if got.Reason != test.reason || count != test.count || !got.Failed && got.Milli != test.milli {
				t.Errorf("got %s %d, count %d", got.Reason, got.Milli, count)
			}
			if wantFailed := test.milli == 0 && test.reason != ObservedFallback; got.Failed != wantFailed {
				t.Errorf("failed: got %v", got.Failed)
			}
		})
	}
}

// TestFallbackNeedsAReadyPod: a target of type Value is counted by ready pods.
func TestFallbackNeedsAReadyPod(t *testing.T) {
	so := one(t, `"metricType":"Value","metadata":{"threshold":"2"}`, `{"replicas":6}`, `null`, 0)
	if got := so.Observe(Newest(), external(so, Newest()), Reading{Failure: QueryRefused}, Sizes{Current: 4}); got.Reason != ObservedNoReady || !got.Failed {
		t.Errorf("got %+v", got)
	}
}

// TestActivation: strictly above, by the raw value and not by thousandths.
func TestActivation(t *testing.T) {
	tests := map[string]struct {
		value     float64
		threshold string
		want      bool
	}{
		"at":                   {2, "2", false},
		"above by less than m": {2.0004, "2", true},
		"above":                {2.001, "2", true},
		"below":                {1.999, "2", false},
		"default":              {0.0001, "", true},
		"zero":                 {0, "", false},
		"negative threshold":   {-1, "-5", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := one(t, fmt.Sprintf(`"metadata":{"threshold":"1","activationThreshold":%q}`, test.threshold), `null`, `null`, 0)
			o := so.Observe(Newest(), external(so, Newest()), Reading{Value: test.value}, Sizes{})
			activity := so.Activity(Newest(), []Observed{o})
			if o.Active != test.want || activity.Active != test.want {
				t.Errorf("got %v %v", o.Active, activity.Active)
			}
		})
	}
}

// TestFallbackIsActive: since 2.19 a fallback lifts from zero.
func TestFallbackIsActive(t *testing.T) {
	so := one(t, `"metadata":{"threshold":"1"}`, `{"replicas":3}`, `null`, 0)
	for version, want := range map[Version]LoopActivity{
		{2, 18, 3}: {Failed: true, Reason: ActiveNot},
		{2, 19, 0}: {Active: true, Fallback: true, Reason: ActiveFallback},
	} {
		o := so.Observe(version, external(so, version), Reading{Failure: QueryRefused}, Sizes{})
		got := so.Activity(version, []Observed{o})
		if got.Active != want.Active || got.Failed != want.Failed || got.Fallback != want.Fallback || got.Reason != want.Reason {
			t.Errorf("%v: got %+v", version, got)
		}
	}
}

// TestOnlyResources is keda#2446: cpu and memory alone never go to zero.
func TestOnlyResources(t *testing.T) {
	so := parse(t, `{"spec":{"triggers":[{"type":"cpu"},{"type":"memory"}]}}`)
	if got := so.Activity(Newest(), nil); !got.Active || got.Reason != ActiveResources {
		t.Errorf("got %+v", got)
	}
	if got := so.Step(Newest(), 0, so.Activity(Newest(), nil), at()); got.Reason != StepActivates {
		t.Errorf("got %+v", got)
	}
}

// TestCachedFallback: the HPA's question takes a recorded fallback for a value,
// and sets the count of failures back.
func TestCachedFallback(t *testing.T) {
	so := one(t, `"useCachedMetrics":true,"metadata":{"threshold":"2"}`, `{"failureThreshold":3,"replicas":6}`, `null`, 3)
	record := so.Observe(Newest(), external(so, Newest()), Reading{Failure: QueryRefused}, Sizes{})
	got := so.ObserveCached(Newest(), record, Sizes{})
	if record.Reason != ObservedFallback || got.Failed || got.Milli != 12000 || got.Failures == nil || *got.Failures != 0 {
		t.Errorf("got %+v after %+v", got, record)
	}
	so = one(t, `"useCachedMetrics":true,"metadata":{"threshold":"2"}`, `{"failureThreshold":3,"replicas":6}`, `null`, 1)
	record = so.Observe(Newest(), external(so, Newest()), Reading{Failure: QueryRefused}, Sizes{})
	if got = so.ObserveCached(Newest(), record, Sizes{}); !got.Failed || *got.Failures != 2 {
		t.Errorf("a recorded failure: got %+v", got)
	}
}

// TestEmptyIsHealthy: an empty result is a healthy 0 that no fallback sees.
func TestEmptyIsHealthy(t *testing.T) {
	so := one(t, `"metadata":{"threshold":"2"}`, `{"replicas":6}`, `null`, 7)
	got := so.Observe(Newest(), external(so, Newest()), Reading{Empty: true}, Sizes{})
	if got.Reason != ObservedEmpty || got.Failed || got.Milli != 0 || *got.Failures != 0 {
		t.Errorf("got %+v", got)
	}
}
