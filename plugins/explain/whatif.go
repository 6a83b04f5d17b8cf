package explain

import (
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// addWhatIf explains each chain again with the settings applied.
func addWhatIf(document *record.ScalingExplanation, in inputs) error {
	if len(in.settings) == 0 {
		return nil
	}
	if err := matched(in.settings, document.Chains); err != nil {
		return err
	}
	version, _ := hpa.ParseVersion(in.kubernetes)
	explained := false
	for i, link := range in.chains {
		out := &document.Chains[i]
		var what *record.ScalingWhatIf
		var err error
		switch {
		case link.HPA != nil && out.Decision != nil:
			today, observed := decide(link, version, in.at)
			if out.Check != nil && out.Check.Compared && in.at.source != sourcePrometheus {
				today = today.Narrowed(hpa.Compare(today, observed))
			}
			what, err = whatIf(link, today, observed, *out, in.settings, in.at)
		case link.ScaledObject != nil && link.HPA == nil:
			link.ScaledObject = new(link.ScaledObject.Resumed())
			link.HPA = plannedHPA(link)
			today := hpa.Decide(plannedInput(link, version, in.at, hpa.Exactly(sizeWith(plannedSize(link), in.settings))))
			what, err = whatIf(link, today, hpa.Observed{}, *out, in.settings, in.at)
			notePlanned(what, *out)
		default:
			continue
		}
		if err != nil {
			return err
		}
		out.WhatIf, explained = what, true
	}
	if !explained {
		return failure.New(failure.Usage, "leave --set away to see why", "ask what if: no HPA and no ScaledObject decides about a size here")
	}
	return nil
}

// whatIf is one chain with the settings that concern it; nil where none does.
func whatIf(link chain.Chain, today hpa.Decision, observed hpa.Observed, out record.ScalingChain, settings []setting, at moment) (*record.ScalingWhatIf, error) {
	what := &record.ScalingWhatIf{Changes: []string{}, Replicas: out.Replicas, Notes: []string{}}
	object := link.HPA.DeepCopy()
	low, high := known(today)
	changed := slices.Clone(high.Metrics)
	for _, one := range settings {
		metrics := one.metricsOf(out.Triggers)
		if one.trigger != "" && len(metrics) == 0 {
			continue
		}
		what.Changes = append(what.Changes, one.text)
		if err := one.setSpec(object, metrics, link.ScaledObject != nil); err != nil {
			return nil, failure.New(failure.Usage, settingHint, "read --set %q: %w", one.text, err)
		}
	}
	if len(what.Changes) == 0 {
		return nil, nil
	}
	spec := hpa.FromObject(object, high.Replicas.Status, high.Replicas.Ready, high.Version, high.Now)
	if spec.Min > spec.Max {
		return nil, failure.New(failure.Usage, "set both min and max", "ask what if: the minimum %d is above the maximum %d", spec.Min, spec.Max)
	}
	changedObject, err := scaledObjectWith(link, settings, out.Triggers)
	if err != nil {
		return nil, err
	}
	for i := range changed {
		changed[i].Target, changed[i].TargetMilli = spec.Metrics[i].Target, spec.Metrics[i].TargetMilli
	}
	for _, in := range []*hpa.Input{&low, &high} {
		in.Min, in.Max, in.Behavior = spec.Min, spec.Max, spec.Behavior
		for i := range in.Metrics {
			in.Metrics[i].Target, in.Metrics[i].TargetMilli = changed[i].Target, changed[i].TargetMilli
		}
		in.Rescales = &hpa.Rescales{}
		if today.Input.Behavior != nil {
			in.Rescales = in.KnownRescales(rescalesOf(link), observed)
		}
		for _, one := range settings {
			one.setSeen(in, one.metricsOf(out.Triggers))
		}
	}
	merged := hpa.Decide(between(low, high))
	check := hpa.Compare(merged, hpa.Observed{})
	what.Triggers = triggersOf(link, merged, check)
	what.Decision = decisionOf(merged, check, hpa.Observed{}, moment{})
	what.Replicas = countsWith(out.Replicas, settings)
	todayLow, todayHigh := known(today)
	what.SettlesToday, what.Settles = settleBoth(todayLow, todayHigh, at.sync()), settleBoth(low, high, at.sync())
	if out.Check != nil && out.Check.Compared && out.Check.Agrees {
		arrived(what.SettlesToday, out.Check.DesiredReplicas)
	}
	if link.ScaledObject != nil {
		size := link.HPA.Status.CurrentReplicas
		if out.Replicas.Spec != nil {
			size = *out.Replicas.Spec
		}
		size = sizeWith(size, settings)
		what.KEDA = loopWith(link, changedObject, what.Triggers, settings, size, at)
		what.Settles = settleWithKEDA(what.KEDA, what.Replicas, size, low, high, what.Settles, at)
		what.SettlesToday = settleWithKEDA(out.KEDA, out.Replicas, todayLow.Replicas.Spec, todayLow, todayHigh, what.SettlesToday, at)
		what.Notes = append(what.Notes, noEffect(changedObject, settings, at.sync())...)
	}
	return what, nil
}

// sizeWith is the size after a setting replicas=.
func sizeWith(size int32, settings []setting) int32 {
	for _, one := range settings {
		switch {
		case one.counts != nil:
			size = one.counts.Spec
		case one.field == "replicas":
			size = one.count()
		}
	}
	return size
}

// known returns today's input with the totals that were seen in the place of
// averages, once with their lower and once with their upper bounds: totals stay
// what they are when the number of replicas changes.
func known(d hpa.Decision) (low, high hpa.Input) {
	low, high = d.Input, d.Input
	low.Recalled = nextRecall(d)
	high.Recalled = low.Recalled
	low.Metrics, high.Metrics = slices.Clone(low.Metrics), slices.Clone(high.Metrics)
	for i, p := range d.Proposals {
		if p.Reason == hpa.NoReplicas && p.TotalLow == nil {
			// An average of none is none of any other size either.
			low.Metrics[i].Seen, high.Metrics[i].Seen = hpa.Observation{State: hpa.Unknown}, hpa.Observation{State: hpa.Unknown}
			continue
		}
		if p.TotalLow == nil || p.TotalHigh == nil || (p.Metric.Type != hpa.External && p.Metric.Type != hpa.Object) {
			continue
		}
		lowTotal, highTotal := *p.TotalLow, *p.TotalHigh
		low.Metrics[i].Seen = hpa.Observation{State: hpa.Seen, Total: &lowTotal}
		high.Metrics[i].Seen = hpa.Observation{State: hpa.Seen, Total: &highTotal}
	}
	return low, high
}

// between is the input of all totals from those of low to those of high.
func between(low, high hpa.Input) hpa.Input {
	in := high
	in.Metrics = slices.Clone(high.Metrics)
	for i := range in.Metrics {
		least, most := low.Metrics[i].Seen.Total, high.Metrics[i].Seen.Total
		if least != nil && most != nil && *least != *most {
			in.Metrics[i].Seen = hpa.Observation{State: hpa.Seen, Total: least, Most: most}
		}
	}
	return in
}

// nextRecall is what was recalled, as far as it holds for a later sync: this
// one's proposal joins it, and what was proved may have left the window.
func nextRecall(d hpa.Decision) *hpa.Recalled {
	if d.Input.Recalled == nil {
		return nil
	}
	next := hpa.Recalled{Lowest: hpa.AnyCount(), Highest: hpa.AnyCount()}
	next.Lowest.Low = min(d.Input.Recalled.Lowest.Low, d.Raw.Low)
	next.Highest.High = max(d.Input.Recalled.Highest.High, d.Raw.High)
	return &next
}

// setSpec changes the HPA's spec as the setting says.
func (s setting) setSpec(object *autoscalingv2.HorizontalPodAutoscaler, metrics []int, ofKEDA bool) error {
	switch {
	case s.field == "min":
		n := s.count()
		if ofKEDA {
			n = max(n, 1)
		}
		object.Spec.MinReplicas = &n
	case s.field == "max":
		if s.count() < 1 {
			return errorText("the maximum is at least 1")
		}
		object.Spec.MaxReplicas = s.count()
	case strings.HasPrefix(s.field, "behavior."):
		if object.Spec.Behavior == nil {
			object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
		}
		return setBehavior(object.Spec.Behavior, s.field, s.value)
	}
	for _, i := range metrics {
		if i >= len(object.Spec.Metrics) {
			continue
		}
		if err := s.setTarget(&object.Spec.Metrics[i]); err != nil {
			return err
		}
	}
	return nil
}

type errorText string

func (e errorText) Error() string { return string(e) }

func (s setting) setTarget(metric *autoscalingv2.MetricSpec) error {
	target := targetOf(metric)
	if target == nil || s.field == "value" {
		return nil
	}
	threshold := target.AverageValue
	if threshold == nil {
		threshold = target.Value
	}
	switch {
	case target.AverageUtilization != nil && s.field == "threshold":
		value, _ := number64(s.value)
		percent := int32(value)
		target.AverageUtilization = &percent
		return nil
	case target.AverageUtilization != nil, metric.External == nil && metric.Object == nil && s.field == "metricType":
		return errorText("the type of a " + string(metric.Type) + " metric is not changed here")
	}
	if s.field == "threshold" {
		value, _ := number64(s.value)
		threshold = resource.NewMilliQuantity(keda.Milli(value), resource.DecimalSI)
	}
	kind := target.Type
	if s.field == "metricType" {
		kind = autoscalingv2.MetricTargetType(s.value)
	} else if target.AverageValue != nil {
		kind = autoscalingv2.AverageValueMetricType
	}
	*target = autoscalingv2.MetricTarget{Type: kind}
	if kind == autoscalingv2.ValueMetricType {
		target.Value = threshold
	} else {
		target.AverageValue = threshold
	}
	return nil
}

func targetOf(metric *autoscalingv2.MetricSpec) *autoscalingv2.MetricTarget {
	switch {
	case metric.External != nil:
		return &metric.External.Target
	case metric.Object != nil:
		return &metric.Object.Target
	case metric.Pods != nil:
		return &metric.Pods.Target
	case metric.Resource != nil:
		return &metric.Resource.Target
	case metric.ContainerResource != nil:
		return &metric.ContainerResource.Target
	}
	return nil
}

// setSeen changes what the sync sees: a metric's value, or the counts.
func (s setting) setSeen(in *hpa.Input, metrics []int) {
	if s.counts != nil {
		in.Replicas = *s.counts
	}
	if s.seen != nil && s.metric < len(in.Metrics) {
		in.Metrics[s.metric].Seen = *s.seen
	}
	if s.field == "replicas" {
		n := s.count()
		in.Replicas = hpa.Replicas{Spec: n, Status: hpa.Exactly(n), Ready: hpa.Exactly(n)}
		// Of other pods nothing is known.
		in.Pods = nil
	}
	if s.field != "value" {
		return
	}
	value, _ := number64(s.value)
	for _, i := range metrics {
		seen := hpa.Observation{State: hpa.Seen}
		milli := keda.Milli(value)
		switch metric := in.Metrics[i]; {
		case metric.Target == hpa.Utilization:
			percent := int32(value)
			seen.Utilization = &percent
		case metric.Type == hpa.External || metric.Type == hpa.Object:
			seen.Total = &milli
		default:
			seen.Average = &milli
		}
		in.Metrics[i].Seen = seen
	}
}

func (s setting) count() int32 {
	n, _ := strconv.ParseInt(s.value, 10, 32)
	return int32(n)
}

func countsWith(counts record.ReplicaCounts, settings []setting) record.ReplicaCounts {
	for _, one := range settings {
		n := one.count()
		if one.counts != nil {
			counts.Spec = &one.counts.Spec
		}
		switch one.field {
		case "min":
			counts.Min = &n
		case "max":
			counts.Max = &n
		case "idle":
			counts.Idle = &n
		case "replicas":
			counts.Spec, counts.Status, counts.Ready = &n, &n, &n
		}
	}
	return counts
}
