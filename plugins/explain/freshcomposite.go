package explain

import (
	"regexp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// compose evaluates the formula of scalingModifiers with the fresh values. It
// is unknown where one that the formula uses is.
func compose(link chain.Chain, fresh []freshSample) freshSample {
	so := link.ScaledObject
	version, _ := kedaVersionOf(link)
	sample := freshSample{metric: externalOf(link, keda.CompositeMetric), shown: record.FreshValue{Label: "composite", Metric: keda.CompositeMetric}}
	formula := so.Spec.Advanced.Modifiers.Formula
	var observed []keda.Observed
	for _, one := range fresh {
		trigger := so.Spec.Triggers[*one.shown.Index]
		unknown := ""
		switch {
		case one.observed == nil:
			unknown = one.shown.Label + " could not be read"
		case trigger.UseCachedMetrics:
			unknown = one.shown.Label + " is what KEDA's own loop read last (useCachedMetrics)"
		}
		switch {
		case unknown == "":
			observed = append(observed, *one.observed)
		case formula == "" || mentions(formula, trigger.Name):
			sample.shown.Error = unknown
			return sample
		default:
			sample.shown.Note = one.shown.Label + " could not be read; the formula does not use it, and fails only if KEDA cannot read it either"
			stand := so.Observe(version, so.MetricOf(version, *one.shown.Index), keda.Reading{}, sizesOf(link))
			observed = append(observed, stand)
		}
	}
	composite := so.Compose(version, observed)
	if composite.Failed {
		sample.shown.Error = compositeFailure(composite)
		sample.seen = &hpa.Observation{State: hpa.Failed, Reason: "FailedGetExternalMetric"}
		return sample
	}
	value := float64(composite.Milli) / 1000
	sample.shown.Value = &value
	sample.seen = &hpa.Observation{State: hpa.Seen, Total: &composite.Milli}
	if composite.Reason == keda.CompositeFallback || composite.Reason == keda.CompositeNil {
		sample.shown.Note = "KEDA reports its fallback instead"
	}
	return sample
}

func compositeFailure(composite keda.Composite) string {
	if composite.Problem != "" {
		return "the formula gives no value: " + composite.Problem
	}
	return "KEDA gives no composite value while one of its triggers fails"
}

// mentions says whether a formula uses a trigger's name.
func mentions(formula, name string) bool {
	return name != "" && regexp.MustCompile(`(^|[^\w.])`+regexp.QuoteMeta(name)+`($|\W)`).MatchString(formula)
}
