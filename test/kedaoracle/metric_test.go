package kedaoracle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// metric is what both sides say of one metric of the HPA.
type metric struct {
	Source, Name, Type string
	Milli              int64
}

// TestMetricsAgree: names, types and targets of the metrics are those that
// KEDA's scalers give.
func TestMetricsAgree(t *testing.T) {
	server := startPrometheus(t)
	for i := range setting(t, "KEDA_ORACLE_TRACES", 1000) {
		g := generator{rand.New(rand.NewPCG(3<<32, uint64(i)))}
		s := g.state(server.url, time.Now(), 1+g.IntN(4))
		delete(s.object["spec"].(map[string]any), "advanced")
		w := newWorld(t, s)
		scalers, err := w.handler.GetScalersCache(t.Context(), w.typed(t))
		if err != nil {
			t.Fatal(err)
		}
		got, want := map[metric]int{}, map[metric]int{}
		for _, spec := range scalers.GetMetricSpecForScaling(t.Context()) {
			got[metricOf(spec)]++
		}
		for _, m := range w.modelled(t).Metrics(keda.Newest()) {
			want[metric{m.Source, m.Name, m.TargetType, *m.TargetMilli}]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("trace %d (-model +KEDA): %s\nstate %s", i, diff, show(s))
		}
	}
}

func metricOf(spec autoscalingv2.MetricSpec) metric {
	if spec.Resource != nil {
		return metric{string(spec.Type), string(spec.Resource.Name), string(spec.Resource.Target.Type), int64(*spec.Resource.Target.AverageUtilization)}
	}
	target := spec.External.Target
	out := metric{string(spec.Type), spec.External.Metric.Name, string(target.Type), 0}
	if target.AverageValue != nil {
		out.Milli = target.AverageValue.MilliValue()
	} else {
		out.Milli = target.Value.MilliValue()
	}
	return out
}
