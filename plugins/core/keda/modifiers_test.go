package keda

import (
	"fmt"
	"testing"
)

// two is a ScaledObject with the triggers a and b and a formula.
func two(t *testing.T, modifiers, fallback string) ScaledObject {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"spec":{"fallback":%s,"advanced":{"scalingModifiers":%s},"triggers":[
		{"type":"prometheus","name":"a","metadata":{"threshold":"1"}},{"type":"cpu","name":"c","metadata":{"value":"60"}},
		{"type":"prometheus","name":"b","metadata":{"threshold":"1"}}]}}`, fallback, modifiers))
}

// look observes both external triggers.
func look(so ScaledObject, a, b Reading) []Observed {
	plain := so
	plain.Spec.Advanced = nil
	metrics := plain.Metrics(Newest())
	return []Observed{
		so.Observe(Newest(), metrics[0], a, Sizes{Current: 2, Ready: 1}),
		so.Observe(Newest(), metrics[1], b, Sizes{Current: 2, Ready: 1}),
	}
}

func TestCompose(t *testing.T) {
	value := func(v float64) Reading { return Reading{Value: v} }
	broken := Reading{Failure: QueryRefused}
	tests := map[string]struct {
		modifiers, fallback string
		a, b                Reading
		reason              CompositeReason
		milli               int64
		active              bool
	}{
		"a formula":               {`{"formula":"a + b * 2","target":"1"}`, `null`, value(1), value(2.5), CompositeFormula, 6000, true},
		"cut off":                 {`{"formula":"a / 3","target":"1"}`, `null`, value(2), value(0), CompositeFormula, 666, true},
		"a ternary is cast":       {`{"formula":"a > 1 ? 5 : 0","target":"1"}`, `null`, value(1), value(0), CompositeFormula, 0, false},
		"activationTarget, at":    {`{"formula":"a","target":"1","activationTarget":"2"}`, `null`, value(2), value(9), CompositeFormula, 2000, false},
		"activationTarget, above": {`{"formula":"a","target":"1","activationTarget":"2"}`, `null`, value(2.001), value(0), CompositeFormula, 2001, true},
		"a count":                 {`{"formula":"count([a, b], # > 1)","target":"1"}`, `null`, value(2), value(2), CompositeFormula, 2000, true},
		"a trigger fails":         {`{"formula":"a","target":"1"}`, `null`, value(1), broken, CompositeTriggerFailed, 0, false},
		"a fallback skips it":     {`{"formula":"a","target":"5"}`, `{"replicas":3}`, value(1), broken, CompositeFallback, 15000, true},
		"nil has a value":         {`{"formula":"(a ?? 7) + (b ?? 1)","target":"1"}`, `{"replicas":3,"behavior":"scalingModifiers"}`, broken, value(2), CompositeFormula, 9000, true},
		"nil is the fallback":     {`{"formula":"a ?? nil","target":"2"}`, `{"replicas":3,"behavior":"scalingModifiers"}`, broken, value(2), CompositeNil, 6000, true},
		"nil without ??":          {`{"formula":"a + 1","target":"2"}`, `{"replicas":3,"behavior":"scalingModifiers"}`, broken, value(2), CompositeFailed, 0, false},
		"it fails on the values":  {`{"formula":"[1][int(a + 1)]","target":"1"}`, `null`, value(5), value(0), CompositeFailed, 0, false},
		"an unknown name":         {`{"formula":"a + nobody","target":"1"}`, `null`, value(1), value(1), CompositeInvalid, 0, false},
		"cpu is unknown":          {`{"formula":"a + c","target":"1"}`, `null`, value(1), value(1), CompositeInvalid, 0, false},
		"no target":               {`{"formula":"a","target":"0"}`, `null`, value(1), value(1), CompositeInvalid, 0, false},
		"no formula: the sum":     {`{"target":"1"}`, `null`, value(1), value(2), CompositeSum, 3000, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := two(t, test.modifiers, test.fallback)
			observed := look(so, test.a, test.b)
			got := so.Compose(Newest(), observed)
			if got.Reason != test.reason || got.Milli != test.milli {
				t.Errorf("got %s %d: %s", got.Reason, got.Milli, got.Problem)
			}
			if (got.Reason == CompositeFailed || got.Reason == CompositeInvalid) != (got.Problem != "") {
				t.Errorf("problem %q", got.Problem)
			}
			activity := so.Activity(Newest(), observed)
			if activity.Active != test.active || activity.Stopped != (test.reason == CompositeInvalid) {
				t.Errorf("got %+v", activity)
			}
		})
	}
}

// TestFailingFormulaIsInactive: a formula that fails is no error for KEDA's
// loop, which therefore goes to zero after the cooldown.
func TestFailingFormulaIsInactive(t *testing.T) {
	so := two(t, `{"formula":"[1][int(a)]","target":"1"}`, `null`)
	activity := so.Activity(Newest(), look(so, Reading{Value: 5}, Reading{}))
	if activity.Failed || activity.Active {
		t.Errorf("got %+v", activity)
	}
	if step := so.Step(Newest(), 4, activity, at()); step.Reason != StepDeactivates || step.To != 0 {
		t.Errorf("got %+v", step)
	}
	if served := so.Serve(Newest(), CompositeMetric, look(so, Reading{Value: 5}, Reading{})); served.Reason != ServedFailed {
		t.Errorf("got %+v", served)
	}
}

// TestComposite4 is keda#7072: only the composite value counts. 4 against a
// target of 5 per replica asks for one replica, whatever the triggers are.
func TestComposite4(t *testing.T) {
	so := two(t, `{"formula":"max([a, b]) > 100 ? 4 : 0","target":"5"}`, `null`)
	served := so.Serve(Newest(), CompositeMetric, look(so, Reading{Value: 500}, Reading{Value: 90}))
	if served.Reason != ServedComposite || served.Milli != 4000 {
		t.Errorf("got %+v", served)
	}
	metrics := so.Metrics(Newest())
	if last := metrics[len(metrics)-1]; last.Name != CompositeMetric || *last.TargetMilli != 5000 {
		t.Errorf("got %+v", last)
	}
}

func TestServe(t *testing.T) {
	so := parse(t, `{"spec":{"triggers":[{"type":"prometheus","metadata":{"threshold":"2"}}]}}`)
	good := so.Observe(Newest(), so.Metrics(Newest())[0], Reading{Value: 0.0015}, Sizes{})
	bad := so.Observe(Newest(), so.Metrics(Newest())[0], Reading{Failure: QuerySeveral}, Sizes{})
	tests := map[string]struct {
		metric   string
		observed Observed
		want     Served
	}{
		"a value":   {"s0-prometheus", good, Served{Reason: ServedTrigger, Milli: 2}},
		"a failure": {"s0-prometheus", bad, Served{Reason: ServedFailed}},
		"another":   {"s1-prometheus", good, Served{Reason: ServedUnknown}},
	}
	for name, test := range tests {
		if got := so.Serve(Newest(), test.metric, []Observed{test.observed}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestLoopSource(t *testing.T) {
	tests := map[string]struct {
		spec    string
		version Version
		asks    bool
		want    LoopSource
	}{
		"with a minimum": {`{"minReplicaCount":1}`, Newest(), true, LoopFromHPA},
		"before 2.21":    {`{"minReplicaCount":1}`, Version{2, 20, 2}, true, LoopQueries},
		"HPA is silent":  {`{"minReplicaCount":1}`, Newest(), false, LoopQueries},
		"to zero":        {`{}`, Newest(), true, LoopQueries},
		"idle":           {`{"minReplicaCount":1,"idleReplicaCount":0}`, Newest(), true, LoopQueries},
		"cached":         {`{"minReplicaCount":1,"triggers":[{"useCachedMetrics":true}]}`, Newest(), true, LoopQueries},
		"modifiers":      {`{"minReplicaCount":1,"advanced":{"scalingModifiers":{"formula":"1","target":"1"}}}`, Newest(), true, LoopQueries},
	}
	for name, test := range tests {
		if got := parse(t, `{"spec":`+test.spec+`}`).LoopSource(test.version, test.asks); got != test.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// FuzzFormula: no formula, however odd, brings the model down.
func FuzzFormula(f *testing.F) {
	f.Add("a + b", "1", 1.0)
	f.Add("a ?? nil", "0.5", -1.0)
	f.Add("map(1..3, # * a)", "x", 1e300)
	f.Fuzz(func(t *testing.T, formula, target string, value float64) {
		so := two(t, `{"formula":"a","target":"1"}`, `{"replicas":3}`)
		so.Spec.Advanced.Modifiers.Formula, so.Spec.Advanced.Modifiers.Target = formula, target
		observed := look(so, Reading{Value: value}, Reading{Failure: QueryEmpty})
		_ = so.Activity(Newest(), observed)
		_ = so.Serve(Newest(), CompositeMetric, observed)
		_ = so.ModifiersProblem(Newest())
	})
}
