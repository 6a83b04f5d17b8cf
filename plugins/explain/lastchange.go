package explain

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// The field managers of the two controllers that write sizes by themselves.
const (
	managerHPA  = "kube-controller-manager"
	managerKEDA = "keda"
)

// oneWrite is how far apart the times may be that tell of one write: they are
// whole seconds of different clocks.
const oneWrite = 2 * time.Second

// lastChangeOf names the newest change of the size that something proves: the
// HPA's lastScaleTime, KEDA's events, and the owner of spec.replicas in
// managedFields. Where they do not explain the size that is there, who wrote it
// is unknown. It is nil where nothing tells of a change.
func lastChangeOf(link chain.Chain) *record.ReplicaChange {
	proven := laterOf(hpaChange(link), kedaChange(link))
	w := link.Workload
	if w == nil {
		return proven
	}
	size := w.Spec
	if owner := w.Writer; owner != nil {
		return ownersChange(link, *owner, proven)
	}
	const because = "managedFields, which would tell, are not given"
	switch {
	case proven == nil:
		// The first size of a new Deployment is no change.
		if event := sizedBy(link, nil); event != nil {
			if from, _ := fromTo(event.Message); from != nil && *from > 0 {
				return &record.ReplicaChange{Time: utc(eventTime(*event)), To: &size, Reason: because}
			}
		}
		return nil
	case sizedBy(link, proven.Time) != nil:
		return &record.ReplicaChange{Time: sizedAt(link, proven.Time), To: &size, Reason: because}
	case proven.To != nil && *proven.To != size, proven.By == managerHPA && size == 0:
		return &record.ReplicaChange{To: &size, Reason: because}
	}
	return proven
}

// ownersChange is the write of the manager that owns spec.replicas.
func ownersChange(link chain.Chain, owner chain.Writer, proven *record.ReplicaChange) *record.ReplicaChange {
	size := link.Workload.Spec
	explained := proven != nil && actor(proven.By) == actor(owner.Manager) && (proven.To == nil || *proven.To == size)
	if explained && (owner.Time.IsZero() || !owner.Time.After(proven.Time.Add(oneWrite))) {
		proven.To = &size
		return proven
	}
	written := &record.ReplicaChange{By: owner.Manager, To: &size}
	switch {
	case !owner.Time.IsZero() && owner.Subresource != "scale" && proven != nil && !owner.Time.After(proven.Time.Add(oneWrite)):
		// An entry of many fields that is older than a change of the size shares
		// the size with whoever changed it.
		if proven.To == nil || *proven.To == size {
			return proven
		}
	case !owner.Time.IsZero():
		written.Time = utc(owner.Time)
	}
	if written.Time == nil {
		var after *time.Time
		if proven != nil {
			after = proven.Time
		}
		written.Time = sizedAt(link, after)
	}
	return written
}

// hpaChange is the HPA's own last rescale, with what its event tells.
func hpaChange(link chain.Chain) *record.ReplicaChange {
	if link.HPA == nil || link.HPA.Status.LastScaleTime == nil {
		return nil
	}
	change := &record.ReplicaChange{Time: utc(link.HPA.Status.LastScaleTime.Time), By: managerHPA}
	for _, event := range sizeEvents(link.Events) {
		if event.Time.Sub(*change.Time).Abs() <= oneWrite {
			size := event.Size
			change.To, change.Reason = &size, event.Reason
		}
	}
	return change
}

// kedaChange is the newest event of KEDA's loop that tells of another size.
func kedaChange(link chain.Chain) *record.ReplicaChange {
	var newest *record.ReplicaChange
	for _, event := range link.Related {
		if event.InvolvedObject.Kind != "ScaledObject" || !changesSize(event) {
			continue
		}
		if _, to := fromTo(event.Message); to != nil {
			newest = laterOf(newest, &record.ReplicaChange{Time: utc(eventTime(event)), By: managerKEDA, To: to, Reason: event.Reason})
		}
	}
	return newest
}

// changesSize says whether an event of a ScaledObject tells of a size that was
// written: one that failed names the sizes too.
func changesSize(event corev1.Event) bool {
	return event.Type != corev1.EventTypeWarning && !strings.HasSuffix(event.Reason, "Failed")
}

// sizedAt is when the Deployment's controller followed to the size that is
// there, if that was after a moment and no rollout was under way: then sizes of
// ReplicaSets are not the Deployment's.
func sizedAt(link chain.Chain, after *time.Time) *time.Time {
	event := sizedBy(link, after)
	if event == nil {
		return nil
	}
	return utc(eventTime(*event))
}

// sizedBy is the event that sizedAt takes the time of.
func sizedBy(link chain.Chain, after *time.Time) *corev1.Event {
	var newest *corev1.Event
	sets := map[string]bool{}
	for i := range link.Related {
		event := &link.Related[i]
		if event.Reason != "ScalingReplicaSet" || (after != nil && !eventTime(*event).After(after.Add(oneWrite))) {
			continue
		}
		sets[setOf(event.Message)] = true
		if newest == nil || eventTime(*event).After(eventTime(*newest)) {
			newest = event
		}
	}
	if newest == nil || len(sets) != 1 {
		return nil
	}
	if _, to := fromTo(newest.Message); to == nil || *to != link.Workload.Spec {
		return nil
	}
	return newest
}

// laterOf is the later of two changes with times; nil is none.
func laterOf(a, b *record.ReplicaChange) *record.ReplicaChange {
	if a == nil || (b != nil && b.Time.After(*a.Time)) {
		return b
	}
	return a
}

func utc(t time.Time) *time.Time {
	t = t.UTC()
	return &t
}
