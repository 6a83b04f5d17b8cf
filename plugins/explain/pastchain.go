package explain

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
)

// staleness is how old a scrape may be that still stands for a moment, as in
// Prometheus itself.
const staleness = 5 * time.Minute

// past is one chain at a past moment.
type past struct {
	link chain.Chain
	// at is the moment that was asked for, scrape the last scrape before it, and
	// until when the history was read.
	at, scrape, until, now time.Time
	period                 time.Duration
	scraped                scraped
	values                 []record.FreshValue
}

// locate finds the last scrape of the HPA's status before the moment.
func (p *past) locate(host string) error {
	last, ok := lastBefore(p.scraped.of(seriesCurrent), p.at)
	if !ok || p.at.Sub(last.Time) > staleness || !isSize(last.Value) {
		return fmt.Errorf("%s has no %s within %v before", host, seriesCurrent, staleness)
	}
	p.scrape = last.Time
	return nil
}

// read puts the chain back to the moment, and notes what cannot be known of it.
func (p *past) read(ctx context.Context, o *options, servers *servers, reader prom.Reader, source prom.Source, in *inputs) {
	today := p.link
	p.link.HPA = p.pastHPA(in)
	p.link.Workload = p.pastWorkload(in)
	p.link.Pods = nil
	p.pastEvents(in)
	if today.ScaledObject != nil {
		// What KEDA last wrote is of now.
		so := *today.ScaledObject
		so.Status.Health, so.Status.TriggersActivity, so.Status.LastActiveTime = nil, nil, nil
		p.link.ScaledObject = &so
		in.unreadPast("keda", "what KEDA's own loop did then is not known, but for its events")
		for _, one := range readTriggers(ctx, servers, p.link, p.scrape) {
			p.values = append(p.values, one.shown)
		}
		p.kedaValues(ctx, reader, source)
	}
	p.targets(in)
}

// kedaValues takes what KEDA itself reported, for triggers that have no query.
func (p *past) kedaValues(ctx context.Context, reader prom.Reader, source prom.Source) {
	found, err := seriesOf(ctx, reader, source, p.link.Target.Namespace, fmt.Sprintf("keda_scaler_metrics_value{scaledObject=%q}", p.link.ScaledObject.Metadata.Name), staleness, p.at)
	if err != nil {
		return
	}
	for i := range p.values {
		value := &p.values[i]
		for _, one := range found {
			if one.Labels["metric"] != value.Metric || (value.Index != nil && one.Labels["triggerIndex"] != "" && one.Labels["triggerIndex"] != strconv.Itoa(*value.Index)) {
				continue
			}
			last, ok := lastBefore(one.Samples, p.at)
			switch {
			case !ok || math.IsNaN(last.Value) || math.IsInf(last.Value, 0):
			case value.Value == nil:
				value.Value, value.Error, value.Via = &last.Value, "", "keda"
				value.Note = "as KEDA had read it by " + clockText(last.Time) + ", for the HPA or for its own loop"
			default:
				value.Note = "KEDA had read " + number(last.Value) + " by " + clockText(last.Time)
			}
		}
	}
}

// pastHPA is today's HPA with the status of the moment.
func (p *past) pastHPA(in *inputs) *autoscalingv2.HorizontalPodAutoscaler {
	object := p.link.HPA.DeepCopy()
	current, _ := sizeBefore(p.scraped.of(seriesCurrent), p.scrape)
	object.Status = autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: current, LastScaleTime: object.Status.LastScaleTime}
	able := hpa.SucceededGetScale
	if desired, ok := sizeBefore(p.scraped.of(seriesDesired), p.scrape); ok {
		object.Status.DesiredReplicas = desired
		if desired != current && desired != 0 {
			able = hpa.SucceededRescale
		}
	}
	object.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: string(able)}}
	var edited *metav1.Time
	for _, entry := range object.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(p.scrape) && (edited == nil || entry.Time.After(edited.Time)) {
			edited = entry.Time
		}
	}
	if edited != nil {
		// An entry keeps the last time only: since when the spec was in force is
		// lost.
		object.ManagedFields = nil
		in.unreadPast("spec", fmt.Sprintf("the HPA %s was edited at %s, after that moment: its spec of today is assumed", object.Name, edited.UTC().Format(time.RFC3339)))
	} else {
		var kept []metav1.ManagedFieldsEntry
		for _, entry := range object.ManagedFields {
			if entry.Subresource == "" {
				kept = append(kept, entry)
			}
		}
		object.ManagedFields = kept
	}
	if low, ok := sizeBefore(p.scraped.of(seriesMin), p.scrape); ok {
		object.Spec.MinReplicas = &low
	}
	if high, ok := sizeBefore(p.scraped.of(seriesMax), p.scrape); ok {
		object.Spec.MaxReplicas = high
	}
	return object
}

// pastWorkload is the workload's sizes at the moment. Changed is when one of
// them was last found to be another.
func (p *past) pastWorkload(in *inputs) *chain.Workload {
	var w chain.Workload
	if p.link.Workload != nil {
		w = *p.link.Workload
	}
	if w.Writer != nil && (w.Writer.Time.IsZero() || w.Writer.Time.After(p.scrape)) {
		w.Writer = nil
	}
	w.Updated, w.Changed = nil, time.Time{}
	spec, ok := sizeBefore(p.scraped.of(seriesSpec), p.scrape)
	status, found := sizeBefore(p.scraped.of(seriesReplicas), p.scrape)
	if !ok || !found {
		w.Spec, w.Status, w.Ready, w.Changed = p.link.HPA.Status.CurrentReplicas, p.link.HPA.Status.CurrentReplicas, nil, p.scrape
		in.unreadPast("workload", "how many replicas existed then is not scraped: the HPA's own range is taken")
		return &w
	}
	w.Spec, w.Status, w.Ready = spec, status, nil
	if ready, ok := sizeBefore(p.scraped.of(seriesReady), p.scrape); ok {
		w.Ready = &ready
	}
	for _, name := range []string{seriesSpec, seriesReplicas, seriesReady} {
		samples := p.scraped.of(name)
		for i := 1; i < len(samples); i++ {
			if at := samples[i].Time; samples[i].Value != samples[i-1].Value && !at.After(p.scrape) && at.After(w.Changed) {
				w.Changed = at
			}
		}
	}
	return &w
}

// pastEvents keeps the events up to the moment, where none that matters can be
// gone: they live for an hour.
func (p *past) pastEvents(in *inputs) {
	rescaled := p.link.HPA.Status.LastScaleTime
	keep := func(events []corev1.Event) []corev1.Event {
		kept := []corev1.Event{}
		for _, event := range events {
			if !eventTime(event).After(p.scrape) {
				kept = append(kept, event)
			}
		}
		return kept
	}
	p.link.Related = keep(p.link.Related)
	period := hpa.FromObject(p.link.HPA, hpa.Range{}, hpa.Range{}, hpa.Version{}, p.scrape).LongestPeriod()
	if gone := p.scrape.Add(-2*period - time.Minute).Before(p.now.Add(-historySpan)); gone || p.link.Events == nil {
		p.link.Events = nil
		if gone {
			in.unreadPast("events", "events of that time are gone, or may be: they live for an hour")
		}
	} else {
		p.link.Events = keep(p.link.Events)
	}
	if rescaled == nil || !rescaled.After(p.scrape) {
		return
	}
	// The status tells of a later rescale; that of the moment is in the events.
	last := metav1.NewTime(p.scrape)
	for _, event := range sizeEvents(p.link.Events) {
		if last.Time.Equal(p.scrape) || event.Time.After(last.Time) {
			last = metav1.NewTime(event.Time)
		}
	}
	p.link.HPA.Status.LastScaleTime = &last
}

// targets writes what the status showed of each metric. What was not scraped is
// taken from the trigger's own query.
func (p *past) targets(in *inputs) {
	object := p.link.HPA
	input := hpa.FromObject(object, hpa.Range{}, hpa.Range{}, hpa.Version{}, p.scrape)
	for i, seen := range p.scraped.seen(input, p.scrape) {
		if seen.State == hpa.Unknown {
			for _, value := range p.values {
				if value.Value != nil && value.Metric == input.Metrics[i].Name && object.Spec.Metrics[i].External != nil {
					milli := int64(math.Round(*value.Value * 1000))
					seen = hpa.Observation{State: hpa.Seen, Total: &milli}
					in.at.take(p.link)
				}
			}
		}
		object.Status.CurrentMetrics = append(object.Status.CurrentMetrics, statusOf(object.Spec.Metrics[i], seen))
	}
}

func (m *moment) take(link chain.Chain) {
	if m.taken == nil {
		m.taken = map[string]bool{}
	}
	m.taken[link.HPA.Namespace+"/"+link.HPA.Name] = true
}

// statusOf is the slot of a metric in status.currentMetrics; a failed one has no
// type, an unknown one a type that no metric has.
func statusOf(spec autoscalingv2.MetricSpec, seen hpa.Observation) autoscalingv2.MetricStatus {
	if seen.State != hpa.Seen {
		slot := autoscalingv2.MetricStatus{}
		if seen.State == hpa.Unknown {
			slot.Type = "Unknown"
		}
		return slot
	}
	current := autoscalingv2.MetricValueStatus{AverageUtilization: seen.Utilization}
	if seen.Total != nil {
		current.Value = resource.NewMilliQuantity(*seen.Total, resource.DecimalSI)
	}
	if seen.Average != nil {
		current.AverageValue = resource.NewMilliQuantity(*seen.Average, resource.DecimalSI)
	}
	slot := autoscalingv2.MetricStatus{Type: spec.Type}
	switch {
	case spec.External != nil:
		slot.External = &autoscalingv2.ExternalMetricStatus{Metric: spec.External.Metric, Current: current}
	case spec.Object != nil:
		slot.Object = &autoscalingv2.ObjectMetricStatus{Metric: spec.Object.Metric, DescribedObject: spec.Object.DescribedObject, Current: current}
	case spec.Pods != nil:
		slot.Pods = &autoscalingv2.PodsMetricStatus{Metric: spec.Pods.Metric, Current: current}
	case spec.Resource != nil:
		slot.Resource = &autoscalingv2.ResourceMetricStatus{Name: spec.Resource.Name, Current: current}
	case spec.ContainerResource != nil:
		slot.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{Name: spec.ContainerResource.Name, Container: spec.ContainerResource.Container, Current: current}
	}
	return slot
}

// sizes are the workload's up to the moment.
func (p *past) sizes() []prom.Sample {
	var sizes []prom.Sample
	for _, one := range p.scraped.of(seriesSpec) {
		if !one.Time.After(p.scrape) {
			sizes = append(sizes, one)
		}
	}
	return sizes
}

// next is the first other size of the workload after the moment, or until when
// there was none; nil where sizes were not scraped.
func (p *past) next() *record.PastSize {
	samples := p.scraped.of(seriesSpec)
	if _, ok := sizeBefore(samples, p.scrape); !ok {
		return nil
	}
	// The status shows the size before the sync's own rescale.
	now := p.link.HPA.Status.CurrentReplicas
	last := p.scrape
	for _, one := range samples {
		if one.Time.Before(p.scrape) || !isSize(one.Value) {
			continue
		}
		last = one.Time
		if size := int32(one.Value); size != now {
			return &record.PastSize{Time: one.Time.UTC(), Replicas: &size}
		}
	}
	return &record.PastSize{Time: last.UTC()}
}
