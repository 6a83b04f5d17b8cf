package keda

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMetrics(t *testing.T) {
	triggers := `"triggers":[
		{"type":"prometheus","name":"a","metadata":{"threshold":"0.0015"}},
		{"type":"memory","metricType":"AverageValue","metadata":{"value":"1Gi","containerName":"main"}},
		{"type":"cpu","metricType":"Utilization","metadata":{"value":"60"}},
		{"type":"cron","name":"c","metadata":{"desiredReplicas":"9"}},
		{"type":"prometheus","name":"b","metricType":"Value","metadata":{"threshold":"2"}}]`
	status := `"status":{"externalMetricNames":["s0-prometheus","s3-cron-UTC-00-59","s4-prometheus"]}`
	milli := func(n int64) *int64 { return &n }
	container := Metric{Source: SourceContainerResource, Name: "memory", Container: "main", Trigger: 1, TargetType: TargetAverageValue, TargetMilli: milli(1 << 30 * 1000)}
	cpu := Metric{Source: SourceResource, Name: "cpu", Trigger: 2, TargetType: TargetUtilization, TargetMilli: milli(60)}
	external := func(first int64) []Metric {
		return []Metric{
			container,
			{Source: SourceExternal, Name: "s0-prometheus", Trigger: 0, TargetType: TargetAverageValue, TargetMilli: milli(first)},
			{Source: SourceExternal, Name: "s3-cron-UTC-00-59", Trigger: 3, TargetType: TargetAverageValue, TargetMilli: milli(1000)},
			{Source: SourceExternal, Name: "s4-prometheus", Trigger: 4, TargetType: TargetValue, TargetMilli: milli(2000)},
			cpu,
		}
	}
	composite := Metric{Source: SourceExternal, Name: CompositeMetric, Trigger: -1, TargetType: TargetValue, TargetMilli: milli(1004)}
	tests := map[string]struct {
		version  Version
		advanced string
		want     []Metric
	}{
		"sorted by type":                        {Version{2, 21, 0}, `{}`, external(2)},
		"cut off up to 2.19":                    {Version{2, 19, 0}, `{}`, external(1)},
		"a composite drops the container's cpu": {Version{2, 21, 0}, `{"scalingModifiers":{"formula":"a+b","target":"1.005","metricType":"Value"}}`, []Metric{cpu, composite}},
		"no target, no composite":               {Version{2, 21, 0}, `{"scalingModifiers":{"formula":"a+b","target":"0"}}`, external(2)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := parse(t, `{"spec":{"advanced":`+test.advanced+`,`+triggers+`},`+status+`}`)
			if diff := cmp.Diff(test.want, so.Metrics(test.version), cmpopts.IgnoreUnexported(Metric{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNamesOfMetrics: a name that nothing tells is empty, and so is the target
// of a type that keeps it elsewhere.
func TestNamesOfMetrics(t *testing.T) {
	got := parse(t, `{"spec":{"triggers":[{"type":"kafka","metadata":{"lagThreshold":"5"}}]}}`).Metrics(Newest())
	if len(got) != 1 || got[0].Name != "" || got[0].TargetMilli != nil {
		t.Errorf("got %+v", got)
	}
}
