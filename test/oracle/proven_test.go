package oracle

import (
	"fmt"
	"math"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// proven checks what the controller's conditions are said to prove: no step of
// the truth may be excluded.
func (tr *trace) proven(check hpa.Check, bounds hpa.Decision, observed hpa.Observed, truth hpa.Decision) (problems []string) {
	if !observed.AbleTrue {
		return nil
	}
	if !check.Agrees() {
		problems = append(problems, fmt.Sprintf("from outside: %+v", check))
	}
	if truth.Path != hpa.ByMetrics || truth.Stabilization == nil || bounds.Stabilization == nil {
		return problems
	}
	expect := func(what string, r hpa.Range, n int32) {
		if !r.Contains(n) {
			problems = append(problems, fmt.Sprintf("the %s is said to be proven %v, not %d", what, r, n))
		}
	}
	expect("raw size", check.Raw, truth.Raw.Low)
	expect("stabilized size", check.Stabilized, truth.Stabilization.Count.Low)
	// A limit on the wrong side of the current size counts as that size.
	spec, up, down := truth.Input.Replicas.Spec, truth.Limit.Up.Low, truth.Limit.Down.Low
	if !check.Up.Contains(up) {
		expect("limit up", check.Up, max(up, spec))
	}
	if !check.Down.Contains(down) {
		expect("limit down", check.Down, min(down, spec))
	}
	if check.Able != "" && check.Able != truth.Stabilization.Reason {
		problems = append(problems, fmt.Sprintf("stabilization is said to be proven %s, not %s", check.Able, truth.Stabilization.Reason))
	}
	for i, r := range check.Proposals {
		if want := truth.Proposals[i]; want.Reason != hpa.MetricFailed && bounds.Proposals[i].Reason != hpa.MetricFailed {
			n := want.Count.Low
			if r.Low >= 0 {
				n = max(0, n)
			}
			expect("proposal of "+want.Metric.Name, r, n)
		}
	}
	for i, p := range bounds.Proposals {
		want := truth.Proposals[i]
		if p.Complete == nil || bounds.Input.Pods == nil || want.Groups == nil || want.Groups.Missing != hpa.Exactly(0) {
			continue
		}
		expect("proposal with all samples of "+want.Metric.Name, p.Complete.Count, want.Count.Low)
	}
	if len(problems) > 0 {
		problems = append(problems, fmt.Sprintf("bounds %v, %+v, %+v", bounds.Raw, bounds.Stabilization, bounds.Limit))
	}
	return problems
}

// unsure is the view of somebody who read the replicas later than the sync did:
// status.replicas and the Ready pods lie between bounds, the pods are not known.
func (tr *trace) unsure(in hpa.Input, before situation, observed hpa.Observed, truth hpa.Decision) (problems []string) {
	in.Pods = nil
	spec := in.Replicas.Spec
	in.Replicas.Status = hpa.Range{Low: min(before.status, spec), High: max(before.status, spec)}
	if len(tr.world.syncs)%2 == 0 {
		in.Replicas.Status = hpa.Range{Low: 0, High: max(before.status, in.Max) + 2}
	}
	in.Replicas.Ready = hpa.Range{Low: 0, High: math.MaxInt16}
	decision := hpa.Decide(in)
	problems = contains(decision, truth)
	check := hpa.Compare(decision, observed)
	problems = append(problems, tr.proven(check, decision, observed, truth)...)
	if truth.Path != hpa.ByMetrics || truth.Stabilization == nil || decision.Stabilization == nil {
		return problems
	}
	tr.sum.steps++
	for _, one := range []struct {
		size  hpa.Range
		count *int
	}{
		{decision.Raw, &tr.sum.raw}, {check.Raw, &tr.sum.provenRaw},
		{decision.Stabilization.Count, &tr.sum.stabilized}, {check.Stabilized, &tr.sum.provenStabilized},
	} {
		if one.size.Exact() {
			*one.count++
		}
	}
	return problems
}
