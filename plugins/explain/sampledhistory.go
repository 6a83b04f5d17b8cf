package explain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/prom"
)

// addSampledSizes adds the changes of size that the trigger's Prometheus has
// scraped of kube-state-metrics: they outlive events.
func (o *options) addSampledSizes(ctx context.Context, in inputs, document *record.ScalingExplanation) {
	for i, then := range in.then {
		*document.Chains[i].History = withSizes(*document.Chains[i].History, then.sizes())
	}
	if in.then != nil {
		return
	}
	for i, link := range in.chains {
		samples, err := o.sampledSizes(ctx, in.servers, link, in.at.time)
		if err != nil {
			document.Unread = append(document.Unread, record.UnreadInput{
				Input: "prometheus", Verb: "query", Resource: "kube_deployment_spec_replicas", Namespace: link.Target.Namespace,
				Message: "no sizes from Prometheus: " + err.Error(),
			})
			continue
		}
		*document.Chains[i].History = withSizes(*document.Chains[i].History, samples)
	}
}

// sampledSizes asks --prometheus, or the first trigger's server that has one.
func (o *options) sampledSizes(ctx context.Context, servers *servers, link chain.Chain, at time.Time) ([]prom.Sample, error) {
	if link.Target.Kind != "Deployment" {
		return nil, fmt.Errorf("%s %s is no Deployment", link.Target.Kind, link.Target.Name)
	}
	reader, source, err := o.historySource(ctx, servers, link)
	if err != nil {
		return nil, err
	}
	series, err := seriesOf(ctx, reader, source, link.Target.Namespace, fmt.Sprintf("%s{deployment=%q}", seriesSpec, link.Target.Name), historySpan, at)
	if err != nil {
		return nil, err
	}
	if len(series) == 0 {
		return nil, fmt.Errorf("%s has no %s of %s/%s: kube-state-metrics is not there, or not scraped", source.Address.Host, seriesSpec, link.Target.Namespace, link.Target.Name)
	}
	return series[0].Samples, nil
}

// withSizes adds changes between scrapes that no other entry tells of. What came
// and went between two scrapes is not in them.
func withSizes(history []record.HistoryEntry, samples []prom.Sample) []record.HistoryEntry {
	for i := 1; i < len(samples); i++ {
		before, after := samples[i-1], samples[i]
		if before.Value == after.Value || !isSize(before.Value) || !isSize(after.Value) {
			continue
		}
		from, to := int32(before.Value), int32(after.Value)
		told := slices.ContainsFunc(history, func(e record.HistoryEntry) bool {
			return e.To != nil && *e.To == to && e.Time.After(before.Time.Add(-time.Second)) && !e.Time.After(after.Time)
		})
		if !told {
			history = append(history, record.HistoryEntry{
				Time: after.Time, Kind: record.HistorySampled, By: "Prometheus", From: &from, To: &to, Count: 1,
				Text: "found between the scrapes at " + clockText(before.Time) + " and " + clockText(after.Time) + "; no event tells who",
			})
		}
	}
	slices.SortStableFunc(history, func(a, b record.HistoryEntry) int { return a.Time.Compare(b.Time) })
	return history
}

func isSize(value float64) bool {
	return value >= 0 && value <= math.MaxInt32 && value == math.Trunc(value)
}
