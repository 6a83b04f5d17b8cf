package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// fetchMemory reads what bounds the controller's memory, its Lease, where that
// matters. A recording gets it.
func (o *options) fetchMemory(ctx context.Context, fetched *kube.FetchedChains, at moment) error {
	rescaled := func(c chain.Chain) bool { return rescaledLately(c, at) }
	held := func(c chain.Chain) bool { return c.HPA != nil && isHeld(hpa.ObservedIn(c.HPA)) }
	scaled := func(c chain.Chain) bool { return c.HPA != nil }
	if slices.ContainsFunc(fetched.Chains, rescaled) || slices.ContainsFunc(fetched.Chains, held) || ((o.record != "" || o.at != nil) && slices.ContainsFunc(fetched.Chains, scaled)) {
		return o.factory.FetchLeader(ctx, fetched)
	}
	return nil
}

// isHeld says whether a stabilization window holds the size.
func isHeld(observed hpa.Observed) bool {
	return observed.Able == string(hpa.ScaleUpStabilized) || observed.Able == string(hpa.ScaleDownStabilized)
}

// rescaledLately says whether the HPA's own rescales may shape its rate limits.
func rescaledLately(link chain.Chain, at moment) bool {
	if link.HPA == nil {
		return false
	}
	in := hpa.FromObject(link.HPA, hpa.Range{}, hpa.Range{}, hpa.Version{}, at.time)
	in.Slack = at.slack
	known := in.KnownRescales(nil, hpa.ObservedIn(link.HPA))
	return known == nil
}

// rescalesOf are the HPA's rescales with the sizes before them, as far as the
// Deployment's events prove those; nil stays nil: unknown. A rollout that is
// under way, or stuck, spreads the size over several ReplicaSets.
func rescalesOf(link chain.Chain) []hpa.SizeEvent {
	sizes := sizeEvents(link.Events)
	w := link.Workload
	if sizes == nil || w == nil || w.Kind != "Deployment" || w.Updated == nil || *w.Updated != w.Status {
		return sizes
	}
	var steps []hpa.SizeStep
	for _, event := range link.Related {
		if event.Reason != "ScalingReplicaSet" {
			continue
		}
		from, to := fromTo(event.Message)
		if from == nil || to == nil {
			// Another way to say it, from which nothing can be concluded.
			return sizes
		}
		steps = append(steps, hpa.SizeStep{Time: eventTime(event), Count: eventCount(event), Set: setOf(event.Message), From: *from, To: *to})
	}
	return hpa.SizesBefore(sizes, steps)
}

// setOf is the ReplicaSet in "Scaled up replica set NAME from 1 to 2".
func setOf(message string) string {
	_, rest, _ := strings.Cut(message, "replica set ")
	name, _, _ := strings.Cut(rest, " ")
	return name
}

// assumed says what the sizes before the recent rescales rest on.
func assumed(d hpa.Decision) []string {
	assumptions := []string{}
	if d.Input.Rescales == nil {
		return assumptions
	}
	for _, at := range d.Input.Rescales.Told {
		assumptions = append(assumptions, "nobody else wrote a size in the second before the HPA's rescale at "+clockText(at)+": the Deployment's events tell of none")
	}
	return assumptions
}
