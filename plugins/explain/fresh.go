package explain

import (
	"context"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// addFresh asks for the values of now, and decides with them.
func (o *options) addFresh(ctx context.Context, in inputs, document *record.ScalingExplanation) error {
	version, _ := hpa.ParseVersion(in.kubernetes)
	for i, link := range in.chains {
		out := &document.Chains[i]
		if link.HPA == nil && link.ScaledObject == nil {
			continue
		}
		fresh := o.readFresh(ctx, in.servers, link)
		out.Now = &record.ScalingNow{ReadAt: o.clock().UTC().Truncate(time.Second), Values: []record.FreshValue{}}
		for _, one := range fresh {
			out.Now.Values = append(out.Now.Values, one.shown)
		}
		settings := freshSettings(fresh, link)
		if link.HPA == nil || out.Decision == nil || len(settings) == 0 {
			continue
		}
		today, observed := decide(link, version, in.at)
		var err error
		if out.Now.Decision, err = whatIf(link, today, observed, *out, settings, in.at); err != nil {
			return err
		}
	}
	return nil
}

// freshSample is what was read of one metric.
type freshSample struct {
	shown record.FreshValue
	// metric is the name of the HPA's metric that it takes the place of, at an
	// index of its own; -1 where the HPA has none.
	metric int
	// seen is nil where it could not be read.
	seen *hpa.Observation
	// observed is the trigger as KEDA sees it; nil unless KEDA serves it.
	observed *keda.Observed
}

// readFresh reads each metric where the controller, or KEDA for it, reads it.
func (o *options) readFresh(ctx context.Context, servers *servers, link chain.Chain) []freshSample {
	var fresh []freshSample
	if link.ScaledObject != nil && !o.external {
		fresh = readTriggers(ctx, servers, link, o.clock())
		if link.ScaledObject.UsesModifiers() {
			fresh = append(fresh, compose(link, fresh))
		}
	}
	if link.HPA != nil {
		fresh = append(fresh, o.readMetrics(ctx, link)...)
	}
	return fresh
}

// readTriggers asks for each trigger that KEDA serves, all at once.
func readTriggers(ctx context.Context, servers *servers, link chain.Chain, at time.Time) []freshSample {
	so := link.ScaledObject
	all := make([]freshSample, len(so.Spec.Triggers))
	var questions sync.WaitGroup
	for i, trigger := range so.Spec.Triggers {
		if !trigger.IsResource() {
			questions.Go(func() { all[i] = readTrigger(ctx, servers, link, i, at) })
		}
	}
	questions.Wait()
	fresh := []freshSample{}
	for i, trigger := range so.Spec.Triggers {
		if !trigger.IsResource() {
			fresh = append(fresh, all[i])
		}
	}
	return fresh
}

func readTrigger(ctx context.Context, servers *servers, link chain.Chain, index int, at time.Time) freshSample {
	so := link.ScaledObject
	version, _ := kedaVersionOf(link)
	trigger, metric := so.Spec.Triggers[index], so.MetricOf(version, index)
	sample := freshSample{metric: externalOf(link, metric.Name), shown: record.FreshValue{Index: &index, Label: trigger.Label(), Metric: metric.Name}}
	if trigger.Query() == "" {
		sample.shown.Error = "a " + trigger.Type + " trigger is not read here: --external-metrics asks KEDA for it"
		return sample
	}
	reader, source, err := servers.source(ctx, link, trigger, version)
	if err != nil {
		sample.shown.Error = err.Error()
		return sample
	}
	result, err := reader.Read(ctx, source, version, at)
	sample.shown.Via, sample.shown.Note = result.Via, result.Note
	reading := keda.Reading{Value: result.Value, Failure: result.Failure, Empty: result.Empty}
	if err != nil {
		sample.shown.Error = err.Error()
		if reading.Failure == "" || reading.Failure == keda.QueryRefused {
			// KEDA may have another way, and other rights.
			return sample
		}
	} else {
		sample.shown.Value = &result.Value
	}
	observed := so.Observe(version, metric, reading, sizesOf(link))
	sample.observed = &observed
	sample.seen = &hpa.Observation{State: hpa.Failed, Reason: "FailedGetExternalMetric"}
	if !observed.Failed {
		sample.seen = &hpa.Observation{State: hpa.Seen, Total: &observed.Milli}
	}
	switch {
	case observed.Fallback:
		sample.shown.Note = "KEDA reports its fallback instead"
	case trigger.UseCachedMetrics && sample.shown.Note == "":
		sample.shown.Note = "the HPA gets what KEDA's own loop read last, up to " + spanText(so.PollingInterval()) + " ago (useCachedMetrics)"
	}
	return sample
}

// externalOf is the index of an external metric of the HPA; -1 without one.
func externalOf(link chain.Chain, name string) int {
	if link.HPA == nil || name == "" {
		return -1
	}
	for i, metric := range link.HPA.Spec.Metrics {
		if metric.External != nil && metric.External.Metric.Name == name {
			return i
		}
	}
	return -1
}

// sizesOf are the counts that a fallback may depend on.
func sizesOf(link chain.Chain) keda.Sizes {
	var sizes keda.Sizes
	if link.Workload != nil {
		sizes.Current = link.Workload.Spec
		if link.Workload.Ready != nil {
			sizes.Ready = *link.Workload.Ready
		}
	}
	if link.Pods != nil {
		sizes.Ready = chain.Ready(link.Pods)
	}
	return sizes
}
