package explain

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
)

// Series of kube-state-metrics about one HPA and its Deployment.
const (
	seriesCurrent  = "kube_horizontalpodautoscaler_status_current_replicas"
	seriesDesired  = "kube_horizontalpodautoscaler_status_desired_replicas"
	seriesMin      = "kube_horizontalpodautoscaler_spec_min_replicas"
	seriesMax      = "kube_horizontalpodautoscaler_spec_max_replicas"
	seriesTarget   = "kube_horizontalpodautoscaler_status_target_metric"
	seriesSpec     = "kube_deployment_spec_replicas"
	seriesReplicas = "kube_deployment_status_replicas"
	seriesReady    = "kube_deployment_status_replicas_ready"
)

// scraped are the series about one chain.
type scraped struct {
	hpa, workload []prom.Series
}

// readScraped asks for what was scraped of a chain within a span, with two
// requests.
func readScraped(ctx context.Context, reader prom.Reader, source prom.Source, link chain.Chain, span time.Duration, at time.Time) (s scraped, err error) {
	selector := fmt.Sprintf("{__name__=~%q,horizontalpodautoscaler=%q}",
		"kube_horizontalpodautoscaler_(status_target_metric|status_current_replicas|status_desired_replicas|spec_min_replicas|spec_max_replicas)", link.HPA.Name)
	if s.hpa, err = seriesOf(ctx, reader, source, link.HPA.Namespace, selector, span, at); err != nil {
		return s, err
	}
	if len(s.of(seriesCurrent)) == 0 {
		return s, fmt.Errorf("%s has no %s of %s/%s: kube-state-metrics is not there, or not scraped then", source.Address.Host, seriesCurrent, link.HPA.Namespace, link.HPA.Name)
	}
	if link.Target.Kind == "Deployment" {
		selector = fmt.Sprintf("{__name__=~%q,deployment=%q}", "kube_deployment_(spec_replicas|status_replicas|status_replicas_ready)", link.Target.Name)
		s.workload, err = seriesOf(ctx, reader, source, link.Target.Namespace, selector, span, at)
	}
	return s, err
}

// seriesOf are the series of one namespace. Scraped without honor_labels, the
// namespace of the exporter itself takes the label's place.
func seriesOf(ctx context.Context, reader prom.Reader, source prom.Source, namespace, selector string, span time.Duration, at time.Time) ([]prom.Series, error) {
	all, err := reader.Samples(ctx, source, selector, span, at)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(one prom.Series) bool {
		own, moved := one.Labels["exported_namespace"]
		if !moved {
			own = one.Labels["namespace"]
		}
		return own != namespace
	}), nil
}

// of are the samples of the first series of a name and, in pairs, of labels.
func (s scraped) of(name string, labels ...string) []prom.Sample {
	for _, one := range slices.Concat(s.hpa, s.workload) {
		fits := one.Labels["__name__"] == name
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && one.Labels[labels[i]] == labels[i+1]
		}
		if fits {
			return one.Samples
		}
	}
	return nil
}

// lastBefore is the newest sample up to a moment; ok is false without one.
func lastBefore(samples []prom.Sample, at time.Time) (last prom.Sample, ok bool) {
	for _, one := range samples {
		if !one.Time.After(at) {
			last, ok = one, true
		}
	}
	return last, ok
}

// sizeBefore is the newest sample up to a moment as a size.
func sizeBefore(samples []prom.Sample, at time.Time) (int32, bool) {
	last, ok := lastBefore(samples, at)
	return int32(last.Value), ok && isSize(last.Value)
}

// statuses are the HPA's statuses as the scrapes found them. in has the metrics
// of its spec.
func (s scraped) statuses(in hpa.Input, period time.Duration) []hpa.Past {
	samples := s.of(seriesCurrent)
	past := []hpa.Past{}
	for i, one := range samples {
		if !isSize(one.Value) {
			continue
		}
		gap := period
		if i > 0 {
			gap = one.Time.Sub(samples[i-1].Time)
		}
		since := one.Time.Add(-period - gap - max(2*time.Second, period/5))
		status := hpa.Range{Low: int32(one.Value), High: int32(one.Value)}
		for _, name := range []string{seriesCurrent, seriesSpec, seriesReplicas} {
			status = widened(status, s.of(name), since, one.Time)
		}
		ready := hpa.Range{High: status.High}
		if known := s.of(seriesReady); len(known) > 0 {
			ready = widened(hpa.Range{Low: math.MaxInt32}, known, since, one.Time)
			ready.Low = min(ready.Low, ready.High)
		}
		if s.of(seriesReplicas) == nil {
			// Of a workload that is not scraped, only its range is known.
			status, ready = hpa.Range{Low: 1, High: max(in.Max, status.High)}, hpa.Range{High: max(in.Max, status.High)}
		}
		past = append(past, hpa.Past{
			Time: one.Time, Replicas: hpa.Replicas{Spec: int32(one.Value), Status: status, Ready: ready}, Seen: s.seen(in, one.Time),
		})
	}
	return past
}

func widened(r hpa.Range, samples []prom.Sample, since, until time.Time) hpa.Range {
	for _, one := range samples {
		if isSize(one.Value) && !one.Time.Before(since) && !one.Time.After(until) {
			r = hpa.Range{Low: min(r.Low, int32(one.Value)), High: max(r.High, int32(one.Value))}
		}
	}
	return r
}

// seen is what the status of one scrape shows of each metric. One that is in
// other scrapes, or beside others in this one, had failed where it is missing.
func (s scraped) seen(in hpa.Input, at time.Time) []hpa.Observation {
	seen := make([]hpa.Observation, len(in.Metrics))
	for i, metric := range in.Metrics {
		twins := 0
		for _, other := range in.Metrics {
			if other.Name == metric.Name {
				twins++
			}
		}
		value := func(kind string) *int64 {
			for _, one := range s.of(seriesTarget, "metric_name", metric.Name, "metric_target_type", kind) {
				if one.Time.Equal(at) && !math.IsNaN(one.Value) && !math.IsInf(one.Value, 0) {
					return new(int64(math.Round(one.Value * 1000)))
				}
			}
			return nil
		}
		one := hpa.Observation{State: hpa.Seen, Total: value("value"), Average: value("average")}
		if percent := value("utilization"); percent != nil {
			one.Utilization = new(int32(*percent / 1000))
		}
		switch {
		case twins > 1, s.of(seriesTarget) == nil:
			one = hpa.Observation{State: hpa.Unknown}
		case one.Total == nil && one.Average == nil && one.Utilization == nil:
			one = hpa.Observation{State: hpa.Failed, Reason: "FailedGet" + string(metric.Type) + "Metric"}
		}
		seen[i] = one
	}
	return seen
}

// historySource is where the history of a chain is: --prometheus, else the
// server of its first trigger that has one.
func (o *options) historySource(ctx context.Context, servers *servers, link chain.Chain) (prom.Reader, prom.Source, error) {
	version, _ := kedaVersionOf(link)
	if o.prometheus != "" {
		return servers.source(ctx, link, keda.Trigger{Type: "prometheus", Metadata: map[string]string{"serverAddress": o.prometheus, "query": "up"}}, version)
	}
	if link.ScaledObject != nil {
		for _, trigger := range link.ScaledObject.Spec.Triggers {
			if trigger.Query() != "" {
				return servers.source(ctx, link, trigger, version)
			}
		}
	}
	return prom.Reader{}, prom.Source{}, fmt.Errorf("no trigger of %s %s has a Prometheus: name one with --prometheus", link.Target.Kind, link.Target.Name)
}

// recallSpan is how far back the controller's memory reaches.
func recallSpan(in hpa.Input, at moment) time.Duration {
	up, down := in.Windows()
	return max(up, down) + at.slack + 2*at.sync()
}

// addStatuses reads the statuses of the window behind a decision that the
// controller's memory keeps open. Few servers have them: it is a line only where one was named.
func (o *options) addStatuses(ctx context.Context, in *inputs) error {
	version, _ := hpa.ParseVersion(in.kubernetes)
	for _, link := range in.chains {
		if link.HPA == nil {
			continue
		}
		decision, _ := decide(link, version, in.at)
		if decision.Stabilization == nil || decision.Stabilization.Known {
			continue
		}
		reader, source, err := o.historySource(ctx, in.servers, link)
		var found scraped
		if err == nil {
			found, err = readScraped(ctx, reader, source, link, recallSpan(decision.Input, in.at), in.at.time)
		}
		if err != nil && o.prometheus != "" {
			in.unread = append(in.unread, record.UnreadInput{
				Input: "prometheus", Verb: "query", Resource: seriesTarget, Namespace: link.HPA.Namespace,
				Message: "the controller's recent proposals stay unknown: " + err.Error(),
			})
		}
		if err != nil {
			continue
		}
		in.at.remember(link, found.statuses(decision.Input, in.at.sync()))
		if err := o.readLease(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// readLease asks since when the controller remembers, unless that was asked
// before: what was proposed is remembered only by one that ran.
func (o *options) readLease(ctx context.Context, in *inputs) error {
	if in.at.since != nil || slices.ContainsFunc(in.unread, func(u record.UnreadInput) bool { return u.Input == "lease" }) {
		return nil
	}
	var fetched kube.FetchedChains
	if err := o.factory.FetchLeader(ctx, &fetched); err != nil {
		return err
	}
	in.unread = append(in.unread, fetched.Unread...)
	if fetched.Leader != nil {
		in.remembering(fetched.Leader)
	}
	return nil
}

func (m *moment) remember(link chain.Chain, past []hpa.Past) {
	if m.past == nil {
		m.past = map[string][]hpa.Past{}
	}
	m.past[link.HPA.Namespace+"/"+link.HPA.Name] = past
}

// recall bounds the controller's memory by what was scraped; nil where nothing
// was. A new HPA remembers nothing older than itself.
func recall(in hpa.Input, link chain.Chain, at moment) *hpa.Recalled {
	past := at.past[link.HPA.Namespace+"/"+link.HPA.Name]
	if len(past) == 0 {
		return nil
	}
	if created := link.HPA.CreationTimestamp.Time; in.MemorySince != nil && created.After(*in.MemorySince) {
		in.MemorySince = &created
	}
	return in.Recall(past, at.sync())
}

// namedServer is an address of --prometheus.
var namedServer = regexp.MustCompile(`^https?://[^\s/?#@]+(/[^\s?#@]*)?$`)
