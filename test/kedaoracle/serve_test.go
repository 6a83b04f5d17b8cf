package kedaoracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/metrics/pkg/apis/external_metrics"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// answer is what the HPA gets: the sum over all items, as it adds them.
type answer struct {
	Failed   bool
	Milli    int64
	Failures map[string]int32
}

// TestServedAgrees asks KEDA for every metric of random states, as the HPA does,
// several times in a row: the values, the errors and the counts of failures
// have to be those of the model.
func TestServedAgrees(t *testing.T) {
	server := startPrometheus(t)
	traces, seed := setting(t, "KEDA_ORACLE_TRACES", 1000), setting(t, "KEDA_ORACLE_SEED", 1)
	answers, problems := 0, 0
	for i := range traces {
		g := generator{rand.New(rand.NewPCG(uint64(seed)+1<<32, uint64(i)))}
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			n, text := runServed(t, g, server)
			answers, problem = answers+n, text
		})
		if problem != "" {
			t.Errorf("trace %d, %s", i, problem)
			if problems++; problems == 10 {
				break
			}
		}
	}
	t.Logf("%d answers to the HPA agree", answers)
}

func runServed(t *testing.T, g generator, server *prometheus) (answers int, problem string) {
	triggers := 1 + g.IntN(3)
	s := g.state(server.url, time.Now(), triggers)
	server.set(s.responses)
	w := newWorld(t, s)
	// KEDA keeps the object as it was when it built the scalers, and builds them
	// anew after an error.
	kept := w.modelled(t)
	for range 1 + g.IntN(4) {
		metric := keda.CompositeMetric
		if !kept.UsesModifiers() {
			metric = fmt.Sprintf("s%d-prometheus", g.IntN(triggers))
		}
		want := w.expectedAnswer(t, &kept, s, metric)
		list, err := w.handler.GetScaledObjectMetrics(context.Background(), "x", "n", metric)
		synctest.Wait()
		got := answer{Failed: err != nil || len(list.Items) == 0, Failures: left(w.typed(t), w.cluster).Failures}
		if !got.Failed {
			got.Milli = total(list)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return answers, fmt.Sprintf("%s (-model +KEDA): %s\nKEDA's error %v\nstate %s", metric, diff, err, show(s))
		}
		answers++
		if g.rarely(3) {
			s.responses = g.responses(triggers)
			server.set(s.responses)
		}
		if g.rarely(3) {
			w.cluster.replicas = pick[int32](g, 0, 1, 2, 5)
			s.replicas = w.cluster.replicas
		}
	}
	so := w.typed(t)
	if err := w.handler.ClearScalersCache(context.Background(), so); err != nil {
		t.Fatal(err)
	}
	return answers, ""
}

func total(list *external_metrics.ExternalMetricValueList) int64 {
	sum := int64(0)
	for _, item := range list.Items {
		sum += item.Value.MilliValue()
	}
	return sum
}

// expectedAnswer is the model's, by the object that KEDA keeps; kept becomes
// what KEDA keeps afterwards.
func (w *world) expectedAnswer(t *testing.T, kept *keda.ScaledObject, s state, metric string) answer {
	t.Helper()
	want := answer{Failures: map[string]int32{}}
	for name, health := range w.modelled(t).Status.Health {
		if health.NumberOfFailures != nil {
			want.Failures[name] = *health.NumberOfFailures
		}
	}
	if compileFails(*kept) {
		want.Failed = true
		return want
	}
	var observed []keda.Observed
	failed := false
	for _, o := range observe(*kept, s) {
		if kept.UsesModifiers() && kept.Spec.Advanced.Modifiers.Target != "" || o.Metric.Name == metric {
			observed = append(observed, o)
			failed = failed || o.Failed
			if o.Failures != nil {
				want.Failures[o.Metric.Name] = *o.Failures
			}
		}
	}
	if kept.Status.Health == nil {
		kept.Status.Health = map[string]keda.Health{}
	}
	for name, failures := range want.Failures {
		kept.Status.Health[name] = keda.Health{NumberOfFailures: &failures}
	}
	served := kept.Serve(keda.Newest(), metric, observed)
	want.Failed = served.Reason == keda.ServedFailed || served.Reason == keda.ServedUnknown
	if !want.Failed {
		want.Milli = served.Milli
	}
	return want
}
