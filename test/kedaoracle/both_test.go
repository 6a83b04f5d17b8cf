package kedaoracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// memory is what KEDA's operator keeps of one ScaledObject between the turns of
// its own loop and the questions of the HPA.
type memory struct {
	// loop is the loop's object, read anew at each turn; kept is the one that
	// came with the scalers, nil after an error. They may be the same.
	loop, kept *keda.ScaledObject
	// record is the last observation that one path leaves for the other.
	record *keda.Observed
}

// both is what either path leaves behind.
type both struct {
	Replicas   int32
	LastActive string
	Failures   int32
	Failed     bool
	Milli      int64
}

// TestBothLoopsAgree lets turns of KEDA's loop and questions of the HPA follow
// each other at random: cached metrics, observations of the HPA that the loop
// uses, and counts of failures that both keep in objects of their own. One
// trigger, because with several the order is that of KEDA's goroutines.
func TestBothLoopsAgree(t *testing.T) {
	server := startPrometheus(t)
	traces, seed := setting(t, "KEDA_ORACLE_TRACES", 500), setting(t, "KEDA_ORACLE_SEED", 1)
	steps, problems := 0, 0
	for i := range traces {
		g := generator{rand.New(rand.NewPCG(uint64(seed)+2<<32, uint64(i)))}
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			n, text := runBoth(t, g, server)
			steps, problem = steps+n, text
		})
		if problem != "" {
			t.Errorf("trace %d, %s", i, problem)
			if problems++; problems == 10 {
				break
			}
		}
	}
	t.Logf("%d steps of both loops agree", steps)
}

// oneTrigger draws a state with one external trigger.
func oneTrigger(g generator, url string) state {
	s := g.state(url, time.Now(), 1)
	spec := s.object["spec"].(map[string]any)
	for spec["triggers"].([]any)[0].(map[string]any)["type"] == "cpu" {
		spec["triggers"] = g.triggers(url, 1)
	}
	if g.rarely(2) {
		spec["triggers"].([]any)[0].(map[string]any)["useCachedMetrics"] = true
	}
	s.object["status"] = g.status(time.Now(), spec["triggers"].([]any))
	return s
}

func runBoth(t *testing.T, g generator, server *prometheus) (steps int, problem string) {
	s := oneTrigger(g, server.url)
	// After a failure in the first turn the goroutine that looks for push scalers
	// may bring in the object as it was at the start.
	s.responses = map[string]response{"q0": {200, `{"data":{"result":[{"value":[1,"3"]}]}}`}}
	server.set(s.responses)
	w := newWorld(t, s)
	if compileFails(w.modelled(t)) {
		return 0, ""
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := w.handler.GetScalersCache(ctx, w.typed(t)); err != nil {
		t.Fatal(err)
	}
	kept, loop := w.modelled(t), keda.ScaledObject{}
	m := &memory{loop: &loop, kept: &kept}
	want := m.turn(w.modelled(t), s)
	if err := w.handler.HandleScalableObject(ctx, w.typed(t)); err != nil {
		t.Fatal(err)
	}
	what, last := "turn", time.Now()
	for range 12 {
		synctest.Wait()
		got := w.bothLeft(t)
		if what == "turn" {
			got.Failed, got.Milli = want.Failed, want.Milli
		}
		if diff := cmp.Diff(want, got); diff != "" {
			problem = fmt.Sprintf("step %d, a %s (-model +KEDA): %s\nstate %s", steps, what, diff, show(s))
			break
		}
		steps++
		if g.rarely(3) {
			s.responses = g.responses(1)
			server.set(s.responses)
		}
		w.cluster.mu.Lock()
		if g.rarely(4) {
			w.cluster.querying = !w.cluster.querying
		}
		s.replicas, s.querying = w.cluster.replicas, w.cluster.querying
		w.cluster.mu.Unlock()
		before := w.modelled(t)
		if g.rarely(2) {
			what = "turn"
			time.Sleep(before.PollingInterval() - time.Since(last) - time.Nanosecond)
			time.Sleep(time.Nanosecond)
			last = time.Now()
			want = m.turn(before, s)
			continue
		}
		what = "question"
		want = m.question(before, s)
		if problem = w.ask(t, before, want); problem != "" {
			problem = fmt.Sprintf("step %d, %s\nstate %s", steps, problem, show(s))
			break
		}
		want.Failed, want.Milli = false, 0
	}
	synctest.Wait()
	if err := w.handler.DeleteScalableObject(ctx, w.typed(t)); err != nil {
		t.Fatal(err)
	}
	return steps, problem
}

func (w *world) bothLeft(t *testing.T) both {
	t.Helper()
	so := w.modelled(t)
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	return leftOf(so, w.cluster.replicas)
}

func leftOf(so keda.ScaledObject, replicas int32) both {
	out := both{Replicas: replicas}
	if last := so.Status.LastActiveTime; last != nil {
		out.LastActive = last.UTC().Format(time.RFC3339)
	}
	if n := so.Status.Health["s0-prometheus"].NumberOfFailures; n != nil {
		out.Failures = *n
	}
	return out
}

// ask puts the HPA's question to KEDA.
func (w *world) ask(t *testing.T, so keda.ScaledObject, want both) string {
	t.Helper()
	metric := "s0-prometheus"
	if so.UsesModifiers() {
		metric = keda.CompositeMetric
	}
	list, err := w.handler.GetScaledObjectMetrics(t.Context(), "x", "n", metric)
	got := both{Failed: err != nil || len(list.Items) == 0}
	if !got.Failed {
		got.Milli = total(list)
	}
	if got.Failed != want.Failed || got.Milli != want.Milli {
		return fmt.Sprintf("question: model %v %d, KEDA %v %d (%v)", want.Failed, want.Milli, got.Failed, got.Milli, err)
	}
	return ""
}

// turn is the model of one turn of KEDA's loop.
func (m *memory) turn(api keda.ScaledObject, s state) both {
	*m.loop = clone(api)
	if m.kept == nil {
		m.kept = m.loop
	}
	var o keda.Observed
	if so := *m.loop; so.LoopSource(keda.Newest(), s.querying) == keda.LoopFromHPA && m.record != nil {
		o = *m.record
	} else {
		o = observeOne(so, s, 0)
		m.count(m.loop, &api, o)
	}
	activity := m.loop.Activity(keda.Newest(), []keda.Observed{o})
	if activity.Failed {
		m.kept = nil
	}
	if activity.Stopped {
		return leftOf(api, s.replicas)
	}
	if m.loop.Spec.Triggers[0].UseCachedMetrics {
		m.record = &o
	}
	step := m.loop.Step(keda.Newest(), s.replicas, activity, time.Now())
	out := leftOf(api, step.To)
	if step.Refreshes {
		out.LastActive = time.Now().UTC().Format(time.RFC3339)
	}
	if step.Reason == keda.StepPaused {
		out.Replicas = s.replicas
	}
	return out
}

// question is the model of one question of the HPA.
func (m *memory) question(api keda.ScaledObject, s state) both {
	if m.kept == nil {
		fresh := clone(api)
		m.kept = &fresh
	}
	o := observeOne(*m.kept, s, 0)
	if m.record != nil && m.kept.Spec.Triggers[0].UseCachedMetrics {
		o = m.kept.ObserveCached(keda.Newest(), *m.record, keda.Sizes{Current: s.replicas, Ready: s.ready})
	}
	m.count(m.kept, &api, o)
	if o.Failures != nil {
		// The formula looks at the object as the API handed it back.
		o.Failures = m.kept.Status.Health[o.Metric.Name].NumberOfFailures
	}
	if m.kept.LoopSource(keda.Newest(), true) == keda.LoopFromHPA {
		m.record = &o
	}
	served := m.kept.Serve(keda.Newest(), o.Metric.Name, []keda.Observed{o})
	out := leftOf(api, s.replicas)
	out.Failed, out.Milli = served.Reason == keda.ServedFailed, served.Milli
	if out.Failed {
		out.Milli = 0
	}
	if o.Failed {
		m.kept = nil
	}
	return out
}

// count writes the count of an observation to the object that its path holds,
// and what changed there to the API, whose answer becomes the object.
func (m *memory) count(holder, api *keda.ScaledObject, o keda.Observed) {
	if o.Failures == nil {
		return
	}
	name := o.Metric.Name
	old, fallback := holder.Status.Health[name], conditionOf(*holder)
	updated := keda.Health{NumberOfFailures: o.Failures, Status: "Happy"}
	if *o.Failures > 0 {
		updated.Status = "Failing"
	}
	after := "False"
	if updated.Status == "Failing" && *o.Failures > holder.Spec.Fallback.FailureThreshold {
		after = "True"
	}
	sameCount := old.NumberOfFailures != nil && *old.NumberOfFailures == *o.Failures
	if sameCount && old.Status == updated.Status && fallback == after {
		return
	}
	merged := api.Status.Health[name]
	if !sameCount {
		merged.NumberOfFailures = o.Failures
	}
	if old.Status != updated.Status {
		merged.Status = updated.Status
	}
	if api.Status.Health == nil {
		api.Status.Health = map[string]keda.Health{}
	}
	api.Status.Health[name] = merged
	if fallback != after {
		// A merge patch has the whole list: it brings back older conditions.
		api.Status.Conditions = slices.Clone(holder.Status.Conditions)
		for i := range api.Status.Conditions {
			if api.Status.Conditions[i].Type == "Fallback" {
				api.Status.Conditions[i].Status = after
			}
		}
	}
	*holder = clone(*api)
}

func conditionOf(so keda.ScaledObject) string {
	condition, _ := so.Condition("Fallback")
	return condition.Status
}

// clone copies what the model writes to.
func clone(so keda.ScaledObject) keda.ScaledObject {
	health := map[string]keda.Health{}
	for name, entry := range so.Status.Health {
		health[name] = entry
	}
	so.Status.Health = health
	so.Status.Conditions = slices.Clone(so.Status.Conditions)
	return so
}
