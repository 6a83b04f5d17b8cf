package explain

import (
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

func stateOf(link chain.Chain) string {
	switch {
	case link.ScaledObject != nil && link.ScaledObject.Pause().All:
		return record.ChainPaused
	case link.HPA == nil && link.ScaledObject != nil && link.ScaledObject.Status.HPAName == "" && len(link.ScaledObject.Status.Conditions) == 0:
		return record.ChainNew
	case link.HPA == nil && link.ScaledObject != nil:
		return record.ChainNoHPA
	case link.HPA == nil:
		return record.ChainStatic
	case !hpa.ObservedIn(link.HPA).Synced:
		return record.ChainNotSynced
	case link.HPA.Status.CurrentReplicas == 0 && (link.Workload == nil || link.Workload.Spec == 0):
		return record.ChainZero
	}
	return record.ChainScaled
}

func countsOf(link chain.Chain) record.ReplicaCounts {
	var counts record.ReplicaCounts
	switch {
	case link.Workload != nil:
		counts.Spec, counts.Status, counts.Ready = &link.Workload.Spec, &link.Workload.Status, link.Workload.Ready
		if link.Pods != nil {
			ready := chain.Ready(link.Pods)
			counts.Ready = &ready
		}
	case link.HPA != nil && hpa.ObservedIn(link.HPA).Synced:
		counts.Spec = &link.HPA.Status.CurrentReplicas
	}
	switch {
	case link.ScaledObject != nil:
		low, high := link.ScaledObject.Min(), link.ScaledObject.Max()
		counts.Min, counts.Max, counts.Idle = &low, &high, link.ScaledObject.Spec.IdleReplicaCount
	case link.HPA != nil:
		low, high := int32(1), link.HPA.Spec.MaxReplicas
		if link.HPA.Spec.MinReplicas != nil {
			low = *link.HPA.Spec.MinReplicas
		}
		counts.Min, counts.Max = &low, &high
	}
	return counts
}

// countRange is a Range as the document holds it.
func countRange(r hpa.Range) record.CountRange {
	out := record.CountRange{Low: max(r.Low, 0)}
	if r.High != hpa.AnyCount().High {
		high := max(r.High, 0)
		out.High = &high
	}
	return out
}

func isUnknown(r hpa.Range) bool { return r == hpa.AnyCount() }

func optionalRange(r hpa.Range) *record.CountRange {
	if isUnknown(r) {
		return nil
	}
	out := countRange(r)
	return &out
}
