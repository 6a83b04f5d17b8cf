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
func (o *options) addSampledSizes(ctx context.Context, in inputs, document *record.ScalingExplanation) error {
	servers, end, err := o.servers(in.raw)
	if err != nil {
		return err
	}
	defer end()
	for i, link := range in.chains {
		samples, err := sampledSizes(ctx, servers, link, in.at.time)
		if err != nil {
			document.Unread = append(document.Unread, record.UnreadInput{
				Input: "prometheus", Verb: "query", Resource: "kube_deployment_spec_replicas", Namespace: link.Target.Namespace,
				Message: "no sizes from Prometheus: " + err.Error(),
			})
			continue
		}
		*document.Chains[i].History = withSizes(*document.Chains[i].History, samples)
	}
	return nil
}

// sampledSizes asks the first trigger's server that can be asked.
func sampledSizes(ctx context.Context, servers *servers, link chain.Chain, at time.Time) ([]prom.Sample, error) {
	if link.ScaledObject == nil || link.Target.Kind != "Deployment" {
		return nil, fmt.Errorf("%s %s has no ScaledObject, or is no Deployment", link.Target.Kind, link.Target.Name)
	}
	version, _ := kedaVersionOf(link)
	for _, trigger := range link.ScaledObject.Spec.Triggers {
		if trigger.Query() == "" {
			continue
		}
		reader, source, err := servers.source(ctx, link, trigger, version)
		if err != nil {
			return nil, err
		}
		series, err := reader.Samples(ctx, source, fmt.Sprintf("kube_deployment_spec_replicas{deployment=%q}", link.Target.Name), historySpan, at)
		if err != nil {
			return nil, err
		}
		for _, one := range series {
			// Scraped without honor_labels, the namespace of kube-state-metrics
			// itself takes the label's place.
			namespace, moved := one.Labels["exported_namespace"]
			if !moved {
				namespace = one.Labels["namespace"]
			}
			if namespace == link.Target.Namespace {
				return one.Samples, nil
			}
		}
		return nil, fmt.Errorf("%s has no kube_deployment_spec_replicas of %s/%s: kube-state-metrics is not there, or not scraped", source.Address.Host, link.Target.Namespace, link.Target.Name)
	}
	return nil, fmt.Errorf("no trigger of ScaledObject %s has a Prometheus", link.ScaledObject.Metadata.Name)
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
