package kedaoracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// outcome is what one turn of KEDA's loop leaves behind.
type outcome struct {
	Replicas                           int32
	Active, Ready, ReadyStatus, Paused string
	LastActive                         string
	Failures                           map[string]int32
	Activity                           map[string]bool
}

// TestLoopAgrees lets KEDA's scale handler run turns of its loop on random
// states, and holds the model against every one. KEDA_ORACLE_TRACES sets how
// many states, KEDA_ORACLE_SEED where they start.
func TestLoopAgrees(t *testing.T) {
	server := startPrometheus(t)
	traces, seed := setting(t, "KEDA_ORACLE_TRACES", 800), setting(t, "KEDA_ORACLE_SEED", 1)
	turns, problems := 0, 0
	for i := range traces {
		g := generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			n, text := runLoop(t, g, server)
			turns, problem = turns+n, text
		})
		if problem != "" {
			t.Errorf("trace %d, %s", i, problem)
			if problems++; problems == 10 {
				break
			}
		}
	}
	t.Logf("%d turns of the loop agree", turns)
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return n
}

// runLoop returns the turns that agree, and the first that does not.
func runLoop(t *testing.T, g generator, server *prometheus) (turns int, problem string) {
	triggers := 1 + g.IntN(3)
	s := g.state(server.url, time.Now(), triggers)
	// What the HPA has observed is another test's subject.
	s.querying = false
	server.set(s.responses)
	w := newWorld(t, s)
	before := w.modelled(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The reconciler builds the scalers before it starts the loop. Without that
	// the loop's first turn may lose its scalers half way, which it takes for
	// triggers that are not active. Here it may fail: on an invalid formula.
	_, _ = w.handler.GetScalersCache(ctx, w.typed(t))
	if err := w.handler.HandleScalableObject(ctx, w.typed(t)); err != nil {
		t.Fatal(err)
	}
	for range 1 + g.IntN(4) {
		synctest.Wait()
		want, got := expected(t, before, s), left(w.typed(t), w.cluster)
		if before.UsesModifiers() && before.Spec.Advanced.Modifiers.Formula == "" {
			// KEDA names one of the active metrics, in the order of its goroutines.
			want.Activity, got.Activity = nil, nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			problem = fmt.Sprintf("turn %d (-model +KEDA): %s\nstate %s", turns+1, diff, show(s))
			break
		}
		turns++
		// The world moves on before the next turn.
		if g.rarely(2) {
			s.responses = g.responses(triggers)
			server.set(s.responses)
		}
		w.cluster.mu.Lock()
		if g.rarely(3) {
			w.cluster.replicas = pick[int32](g, 0, 1, 2, 5)
		}
		s.replicas = w.cluster.replicas
		w.cluster.mu.Unlock()
		before = w.modelled(t)
		time.Sleep(before.PollingInterval())
	}
	// A request that is cancelled half way would leave its connection behind.
	synctest.Wait()
	if err := w.handler.DeleteScalableObject(ctx, w.typed(t)); err != nil {
		t.Fatal(err)
	}
	return turns, problem
}

// left reads what KEDA wrote.
func left(so *kedav1alpha1.ScaledObject, c *cluster) outcome {
	out := outcome{Replicas: c.replicas, Failures: map[string]int32{}, Activity: map[string]bool{}}
	for _, condition := range so.Status.Conditions {
		switch condition.Type {
		case kedav1alpha1.ConditionActive:
			out.Active = condition.Reason
		case kedav1alpha1.ConditionReady:
			out.Ready, out.ReadyStatus = condition.Reason, string(condition.Status)
		case kedav1alpha1.ConditionPaused:
			out.Paused = condition.Reason
		}
	}
	if so.Status.LastActiveTime != nil {
		out.LastActive = so.Status.LastActiveTime.UTC().Format(time.RFC3339)
	}
	for name, health := range so.Status.Health {
		if health.NumberOfFailures != nil {
			out.Failures[name] = *health.NumberOfFailures
		}
	}
	for name, activity := range so.Status.TriggersActivity {
		out.Activity[name] = activity.IsActive
	}
	return out
}

// expected is what the model says that KEDA writes.
func expected(t *testing.T, so keda.ScaledObject, s state) outcome {
	t.Helper()
	out := outcome{Replicas: s.replicas, Failures: map[string]int32{}, Activity: map[string]bool{}}
	for name, health := range so.Status.Health {
		if health.NumberOfFailures != nil {
			out.Failures[name] = *health.NumberOfFailures
		}
	}
	for name, activity := range so.Status.TriggersActivity {
		out.Activity[name] = activity.IsActive
	}
	for kind, reason := range map[string]*string{"Active": &out.Active, "Ready": &out.Ready, "Paused": &out.Paused} {
		condition, _ := so.Condition(kind)
		*reason = condition.Reason
		if kind == "Ready" {
			out.ReadyStatus = condition.Status
		}
	}
	if last := so.Status.LastActiveTime; last != nil {
		out.LastActive = last.UTC().Format(time.RFC3339)
	}
	observed := observe(so, s)
	activity := so.Activity(keda.Newest(), observed)
	if activity.Reason != keda.ActiveNoFormula || !compileFails(so) {
		for _, o := range observed {
			if o.Failures != nil {
				out.Failures[o.Metric.Name] = *o.Failures
			}
		}
	}
	if activity.Stopped {
		return out
	}
	now := time.Now()
	step := so.Step(keda.Newest(), s.replicas, activity, now)
	out.Ready, out.ReadyStatus = step.ReadyReason, step.ReadyStatus
	if step.Refreshes {
		out.LastActive = now.UTC().Format(time.RFC3339)
	}
	if step.ConditionReason != "" {
		out.Active = step.ConditionReason
	}
	out.Replicas = step.To
	if step.Reason == keda.StepPaused {
		// The size of paused-replicas is the reconciler's to set, and the loop
		// does not run any more; a last turn only marks the pause.
		out.Replicas, out.Paused = s.replicas, "ScaledObjectPaused"
	}
	out.Activity = map[string]bool{}
	for _, name := range so.Status.ExternalMetricNames {
		out.Activity[name] = false
	}
	for _, name := range activity.Metrics {
		if _, known := out.Activity[name]; known {
			out.Activity[name] = true
		}
	}
	return out
}

// compileFails says that KEDA does not get as far as a query.
func compileFails(so keda.ScaledObject) bool {
	if !so.UsesModifiers() || so.Spec.Advanced.Modifiers.Formula == "" {
		return false
	}
	_, err := so.CompileFormula(keda.Newest())
	return err != nil
}
