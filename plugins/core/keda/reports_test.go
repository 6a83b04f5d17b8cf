package keda

import "testing"

// TestForeignAdapter is keda#6475: where the external metrics API belongs to
// another adapter, KEDA never hears the HPA's questions. Its own health stays
// Happy, and the fallback does not act while the HPA fails.
func TestForeignAdapter(t *testing.T) {
	so := one(t, `"metadata":{"threshold":"2"}`, `{"failureThreshold":3,"replicas":6}`, `null`, 0)
	so.Status.ExternalMetricNames = []string{"s0-prometheus"}
	so.Status.Health = map[string]Health{"s0-prometheus": {NumberOfFailures: new(int32(0)), Status: "Happy"}}
	if failed := so.FailedMetrics(Newest()); len(failed) != 0 {
		t.Errorf("got %+v", failed)
	}
}

// TestFailedMetrics: threshold 3 needs a fourth failure.
func TestFailedMetrics(t *testing.T) {
	for failures, active := range map[int]bool{1: false, 3: false, 4: true} {
		so := one(t, `"metadata":{"threshold":"2"}`, `{"failureThreshold":3,"replicas":6}`, `null`, failures)
		so.Status.ExternalMetricNames = []string{"s0-prometheus"}
		got := so.FailedMetrics(Newest())
		if len(got) != 1 || got[0].Active != active || got[0].Failures != int32(failures) {
			t.Errorf("%d failures: got %+v", failures, got)
		}
	}
}

// TestFallbackOfOldVersions: before 2.18 a target below 1 was 0, and one of type
// Value had no fallback.
func TestFallbackOfOldVersions(t *testing.T) {
	for name, test := range map[string]struct {
		trigger string
		minor   int
		asks    int32
		off     bool
	}{
		"half, cut off":    {`"metadata":{"threshold":"0.5"}`, 17, 0, false},
		"2.5, cut off":     {`"metadata":{"threshold":"2.5"}`, 16, 5, false},
		"whole":            {`"metadata":{"threshold":"2"}`, 16, 6, false},
		"half":             {`"metadata":{"threshold":"0.5"}`, 18, 6, false},
		"value, none":      {`"metricType":"Value","metadata":{"threshold":"5"}`, 17, 6, true},
		"value, supported": {`"metricType":"Value","metadata":{"threshold":"5"}`, 18, 6, false},
	} {
		v := Version{2, test.minor, 0}
		so := one(t, test.trigger, `{"failureThreshold":3,"replicas":6}`, `null`, 9)
		so.Status.ExternalMetricNames = []string{"s0-prometheus"}
		failed := so.FailedMetrics(v)
		if len(failed) != 1 || failed[0].Off != test.off || failed[0].Active == test.off {
			t.Errorf("%s: got %+v", name, failed)
		}
		if got := so.FallbackAsks(v, so.Metrics(v)[0], 3); got != test.asks {
			t.Errorf("%s: asks for %d", name, got)
		}
	}
}

// TestZeroTarget is kserve#4764: a cpu trigger with a target of 0 percent makes
// an HPA that the API server refuses, so that there is none at all. A threshold
// that rounds to nothing does the same.
func TestZeroTarget(t *testing.T) {
	so := parse(t, `{"spec":{"triggers":[
		{"type":"cpu","metricType":"Utilization","metadata":{"value":"0"}},
		{"type":"prometheus","metadata":{"threshold":"0.0004"}}]}}`)
	for _, metric := range so.Metrics(Newest()) {
		if metric.TargetMilli == nil || *metric.TargetMilli != 0 {
			t.Errorf("%s: got %v", metric.Name, metric.TargetMilli)
		}
	}
}

// TestCron is keda#7398 and keda#5263: a cron trigger reports the desired
// replicas against a target of 1 per replica, whatever its metadata.
func TestCron(t *testing.T) {
	so := parse(t, `{"spec":{"triggers":[{"type":"cpu"},{"type":"cron","metadata":{"desiredReplicas":"60"}}]},
		"status":{"externalMetricNames":["s1-cron-UTC-00-59"]}}`)
	cron := so.Metrics(Newest())[0]
	if cron.Name != "s1-cron-UTC-00-59" || *cron.TargetMilli != 1000 || cron.TargetType != TargetAverageValue {
		t.Errorf("got %+v", cron)
	}
}

func TestOutlook(t *testing.T) {
	conditions := func(ready, active string) string {
		return `"conditions":[{"type":"Ready","status":"x","reason":"` + ready + `"},{"type":"Active","status":"` + active + `"}]`
	}
	tests := map[string]struct {
		status string
		failed bool
		next   StepReason
	}{
		"active":               {conditions(ReadyReason, "True"), false, StepActive},
		"inactive":             {conditions(ReadyReason, "False"), false, StepDeactivates},
		"inactive, fails":      {conditions(ReadyTriggerError, "False"), true, StepTriggerError},
		"active, another does": {conditions(ReadyPartialError, "True"), true, StepPartialError},
		"no turn yet":          {conditions("", "Unknown"), false, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := parse(t, `{"status":{`+test.status+`}}`).Outlook(Newest(), 2, at())
			if got.Failed != test.failed || got.WhenActive.Reason != StepActive || got.WhenInactive.Reason != StepDeactivates {
				t.Errorf("got %+v", got)
			}
			next := StepReason("")
			if got.Next != nil {
				next = got.Next.Reason
			}
			if next != test.next || (got.Active == nil) != (test.next == "") {
				t.Errorf("got %s", next)
			}
		})
	}
}

func TestActivations(t *testing.T) {
	so := parse(t, `{"spec":{"triggers":[{"type":"cpu"},{"type":"prometheus","metadata":{"threshold":"1","activationThreshold":"2.5"}}]}}`)
	if got := so.Activations(Newest()); len(got) != 1 || got[0] != (Threshold{"s1-prometheus", 2.5}) {
		t.Errorf("got %+v", got)
	}
	so = two(t, `{"formula":"a","target":"1","activationTarget":"3"}`, `null`)
	if got := so.Activations(Newest()); len(got) != 1 || got[0] != (Threshold{CompositeMetric, 3}) {
		t.Errorf("got %+v", got)
	}
	if got := two(t, `{"formula":"a","target":"1","activationTarget":"x"}`, `null`).ModifiersProblem(Newest()); got == "" {
		t.Error("an activationTarget that is no number stops KEDA's loop")
	}
}
