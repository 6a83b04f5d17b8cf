package oracle

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// rescaled is what the controller really did: the size that it read, and the one
// that it wrote.
type rescaled struct {
	at       time.Time
	from, to int32
}

// resized is what the workload's own controller tells after a write.
func (w *world) resized(from, to int32) {
	if from != to {
		w.steps = append(w.steps, hpa.SizeStep{Time: time.Now().Truncate(time.Second), Count: 1, Set: "x", From: from, To: to})
	}
}

// stepped is the size that the workload's controller saw last.
func (w *world) stepped() int32 {
	if len(w.steps) == 0 {
		return w.read
	}
	return w.steps[len(w.steps)-1].To
}

// stamp gives the HPA the managedFields that the API server would: the fake one
// keeps none.
func (tr *trace) stamp(object *autoscalingv2.HorizontalPodAutoscaler, at time.Time) {
	if tr.status == nil || !reflect.DeepEqual(*tr.status, object.Status) {
		tr.status, tr.statusAt = object.Status.DeepCopy(), at
	}
	wrote := metav1.NewTime(tr.statusAt.Truncate(time.Second))
	object.ManagedFields = append(slices.Clone(object.ManagedFields), metav1.ManagedFieldsEntry{Manager: "kube-controller-manager", Subresource: "status", Time: &wrote})
}

// remembers checks what is said of the controller's memory from outside: by how
// much it rescaled, and since when it holds a size.
func (tr *trace) remembers(in hpa.Input, sizes []hpa.SizeEvent, observed hpa.Observed, truth hpa.Decision) (problems []string) {
	in.MemorySince = &tr.since
	bounded := in.KnownRescales(sizes, observed)
	told := in.KnownRescales(hpa.SizesBefore(sizes, tr.world.steps), observed)
	if bounded != nil {
		tr.sum.rescales += len(bounded.Up) + len(bounded.Down)
		problems = append(problems, tr.deltas("by the policies", bounded, &tr.sum.bounded)...)
		problems = append(problems, tr.deltas("by the workload's events", told, &tr.sum.told)...)
	}
	if truth.Stabilization == nil || !observed.AbleTrue {
		return problems
	}
	newest, held := holder(truth)
	if !held || (observed.Able != string(hpa.ScaleDownStabilized) && observed.Able != string(hpa.ScaleUpStabilized)) {
		return problems
	}
	tr.sum.held++
	by := in.HeldBy(observed)
	if by.Before(in.Now) {
		tr.sum.shortened++
	}
	if newest.After(by) {
		problems = append(problems, fmt.Sprintf("the size is held by a proposal of %v, not of %v at the latest", newest, by))
	}
	return problems
}

// deltas holds bounds of rescales against the truth. A low bound of 0 says that
// the controller may have forgotten it.
func (tr *trace) deltas(how string, known *hpa.Rescales, exact *int) (problems []string) {
	for _, r := range append(known.Up, known.Down...) {
		if r.Delta.Exact() {
			*exact++
		}
		for _, did := range tr.world.did {
			if did.at.Sub(r.Time).Abs() > 2*time.Second {
				continue
			}
			if delta := max(did.to-did.from, did.from-did.to); delta > r.Delta.High || (r.Delta.Low > 0 && delta < r.Delta.Low) {
				problems = append(problems, fmt.Sprintf("%s the rescale at %v is one by %v; it went from %d to %d", how, r.Time, r.Delta, did.from, did.to))
			}
		}
	}
	return problems
}

// holder is the newest proposal that holds the size in a window.
func holder(d hpa.Decision) (newest time.Time, held bool) {
	s, in := d.Stabilization, d.Input
	for _, rec := range in.History.Recommendations {
		age := in.Now.Sub(rec.Time)
		down := s.Reason == hpa.ScaleDownStabilized && rec.Count >= s.Count.Low && age <= s.DownWindow
		up := s.Reason == hpa.ScaleUpStabilized && rec.Count <= s.Count.Low && age < s.UpWindow
		if (down || up) && (!held || rec.Time.After(newest)) {
			newest, held = rec.Time, true
		}
	}
	return newest, held
}
