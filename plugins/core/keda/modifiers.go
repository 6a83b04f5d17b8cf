package keda

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
)

// UsesModifiers says whether scalingModifiers are set: then one composite
// metric takes the place of all external ones, and the activation is its own.
func (s ScaledObject) UsesModifiers() bool {
	return s.Spec.Advanced != nil && s.Spec.Advanced.Modifiers != nil && *s.Spec.Advanced.Modifiers != Modifiers{}
}

// compositeTarget is the target of the composite metric; ok is false where the
// HPA has none.
func (s ScaledObject) compositeTarget() (target float64, ok bool) {
	if !s.UsesModifiers() {
		return 0, false
	}
	target, err := strconv.ParseFloat(s.Spec.Advanced.Modifiers.Target, 64)
	return target, err == nil && target > 0
}

// Formula is a formula of scalingModifiers that KEDA accepts.
type Formula struct{ run func(values any) (any, error) }

// CompileFormula compiles the formula by KEDA's rules with the library that
// KEDA uses: the variables are the names of the external triggers, and the
// result is cast to a number. It fails where KEDA's webhook would refuse, and
// its operator would make no HPA.
func (s ScaledObject) CompileFormula(v Version) (Formula, error) {
	modifiers := s.Spec.Advanced.Modifiers
	variables := map[string]float64{}
	for _, trigger := range s.Spec.Triggers {
		if trigger.Name != "" && !trigger.IsResource() {
			variables[trigger.Name] = -1
		}
	}
	if _, ok := s.compositeTarget(); !ok {
		return Formula{}, fmt.Errorf("read target of scalingModifiers: %q is no number above 0", modifiers.Target)
	}
	program, err := expr.Compile(castToFloat(v, modifiers.Formula), expr.Env(variables))
	if err != nil {
		return Formula{}, fmt.Errorf("compile formula: %w", err)
	}
	// KEDA tries the formula with -1 for every trigger.
	if _, err := expr.Run(program, variables); err != nil {
		return Formula{}, fmt.Errorf("try formula: %w", err)
	}
	return Formula{func(values any) (any, error) { return expr.Run(program, values) }}, nil
}

// castToFloat wraps a formula as KEDA does: one with ?? may be nil since 2.20.
func castToFloat(v Version, formula string) string {
	if v.since(20, 0) && strings.Contains(formula, "??") {
		return fmt.Sprintf("let _kedaCompositeResult = (%s); _kedaCompositeResult == nil ? nil : float(_kedaCompositeResult)", formula)
	}
	if strings.HasPrefix(formula, "float(") {
		return formula
	}
	return "float(" + formula + ")"
}

// CompositeReason says what a composite value was made of.
type CompositeReason string

// The reasons of a Composite.
const (
	// CompositeFormula: the formula's result.
	CompositeFormula CompositeReason = "formula"
	// CompositeFallback: a trigger is in fallback, and the formula is skipped.
	CompositeFallback CompositeReason = "fallback"
	// CompositeNil: the formula is nil, and the fallback's replicas stand in.
	CompositeNil CompositeReason = "nil"
	// CompositeSum: there is no formula; the triggers' values are added.
	CompositeSum CompositeReason = "sum"
	// CompositeFailed: the formula failed on these values. The HPA gets no
	// value, while KEDA's own loop takes it for inactive, not for an error.
	CompositeFailed CompositeReason = "formula_failed"
	// CompositeTriggerFailed: a trigger failed, and no fallback is active.
	CompositeTriggerFailed CompositeReason = "trigger_failed"
	// CompositeInvalid: KEDA does not accept the formula or the target.
	CompositeInvalid CompositeReason = "invalid"
)

// Composite is the value of the composite metric.
type Composite struct {
	Reason CompositeReason
	// Milli is what the HPA gets, in thousandths; Failed says that it gets an
	// error.
	Milli  int64
	Failed bool
	// Problem is the message of a formula that does not work.
	Problem string
	values  []float64
}

// Compose makes the composite value of the observations of all external
// triggers, as the HPA gets it.
func (s ScaledObject) Compose(v Version, observed []Observed) Composite {
	failed, fallback := false, []Observed{}
	for _, o := range observed {
		failed = failed || o.Failed
		if o.Fallback {
			fallback = append(fallback, o)
		}
	}
	return s.compose(v, observed, fallback, failed)
}

func (s ScaledObject) compose(v Version, observed, fallback []Observed, failed bool) Composite {
	formula, err := Formula{}, error(nil)
	if s.Spec.Advanced.Modifiers.Formula != "" {
		formula, err = s.CompileFormula(v)
	}
	switch {
	case err != nil:
		return Composite{Reason: CompositeInvalid, Failed: true, Problem: err.Error()}
	case failed && len(fallback) == 0:
		return Composite{Reason: CompositeTriggerFailed, Failed: true}
	case len(fallback) > 0:
		// Each trigger in fallback has the same value: that of the composite.
		return Composite{Reason: CompositeFallback, Milli: fallback[0].Milli, values: []float64{fallback[0].value}}
	case formula.run == nil:
		return sum(observed)
	}
	return s.evaluate(v, formula, observed)
}

func sum(observed []Observed) Composite {
	composite := Composite{Reason: CompositeSum, Failed: len(observed) == 0}
	for _, o := range observed {
		composite.Milli += o.Milli
		composite.values = append(composite.values, o.value)
	}
	return composite
}

// evaluate runs the formula. Its result is cut off to thousandths.
func (s ScaledObject) evaluate(v Version, formula Formula, observed []Observed) Composite {
	values := map[string]any{}
	for _, o := range observed {
		if o.nameless {
			continue
		}
		values[s.Spec.Triggers[o.Metric.Trigger].Name] = s.variable(v, o)
	}
	result, err := formula.run(values)
	if err != nil {
		return Composite{Reason: CompositeFailed, Failed: true, Problem: err.Error()}
	}
	out, reason := 0.0, CompositeFormula
	switch result := result.(type) {
	case float64:
		out = result
	case nil:
		target, _ := s.compositeTarget()
		if s.Spec.Fallback == nil {
			return Composite{Reason: CompositeFailed, Failed: true, Problem: "the formula is nil, and there is no fallback"}
		}
		out, reason = float64(s.Spec.Fallback.Replicas)*target, CompositeNil
	default:
		return Composite{Reason: CompositeFailed, Failed: true, Problem: fmt.Sprintf("the formula gives %T, no number", result)}
	}
	q := milliQuantity(int64(out * 1000))
	return Composite{Reason: reason, Milli: q.MilliValue(), values: []float64{q.AsApproximateFloat64()}}
}

// variable is a trigger's value in the formula: nil once its failures exceed
// the threshold, if the fallback leaves it to the formula (since 2.20).
func (s ScaledObject) variable(v Version, o Observed) any {
	if v.since(20, 0) && s.Spec.Fallback != nil && s.Spec.Fallback.Behavior == FallbackScalingModifiers {
		failures := s.failures(o.Metric.Name)
		if o.Failures != nil {
			failures = *o.Failures
		}
		if failures > s.Spec.Fallback.FailureThreshold {
			return nil
		}
	}
	return o.value
}
