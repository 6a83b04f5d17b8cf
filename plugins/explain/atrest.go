package explain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// The objects were read after the sync that the HPA's status tells of, and at
// different moments. What they say holds for that sync only where nothing has
// changed since: managedFields and the pods tell, in whole seconds.
const (
	second = time.Second
	// syncTakes is how much later than it reads the scale a sync may write the
	// status, and how old the spec may be that it works with.
	syncTakes = 3 * time.Second
	// usualGrace is how long a pod has to end unless it says otherwise.
	usualGrace = 30 * time.Second
)

// lastSync is the earliest moment at which the last sync may have been.
// Objects that mention no time at all are taken as those of the sync: then it
// is the zero time.
func lastSync(link chain.Chain, at moment) time.Time {
	if at.time.IsZero() {
		return at.time
	}
	earliest := at.time.Add(-at.slack)
	if written := hpa.ObservedIn(link.HPA).StatusTime().Add(-syncTakes); written.After(earliest) {
		return written
	}
	return earliest
}

// stale says that the HPA was edited after the controller's last sync: its
// status answers for another spec. Before 1.37 the status does not tell which
// one; then an edit that a sync may not have seen yet counts.
func stale(link chain.Chain, at moment) bool {
	if seen := link.HPA.Status.ObservedGeneration; seen != nil && *seen != 0 {
		return *seen < link.HPA.Generation
	}
	edited := hpa.ObservedIn(link.HPA).SpecTime
	return edited != nil && edited.Add(second+syncTakes).After(lastSync(link, at))
}

// replicasAtSync bounds what the sync read as status and ready replicas. They
// are exact where the workload is at rest at the size that the sync saw.
func replicasAtSync(link chain.Chain, at moment) (status, ready hpa.Range) {
	spec, w := link.HPA.Status.CurrentReplicas, link.Workload
	if w == nil {
		// The caller reports that it could not be read.
		return hpa.Exactly(spec), hpa.Range{High: spec}
	}
	since := lastSync(link, at)
	status = hpa.Range{Low: min(spec, w.Status), High: max(spec, w.Status)}
	if changedSince(w.Changed, since) {
		// It may have had any size of its range a moment before, and a rollout's
		// surge.
		status = hpa.Range{Low: min(status.Low, 1), High: max(status.High, w.Spec, link.HPA.Spec.MaxReplicas) + w.Surge}
	}
	switch {
	case podsAtRest(link, at):
		ready = hpa.Exactly(chain.Ready(link.Pods))
	case link.Pods == nil && atRest(link, at) && w.Ready != nil && *w.Ready == spec:
		ready = hpa.Exactly(spec)
	default:
		ready = readySince(link.Pods, since)
		ready.High = max(ready.High, status.High, link.HPA.Spec.MaxReplicas)
	}
	return status, ready
}

// readySince bounds the Ready pods at a moment: those that have been so since,
// and all there may have been. Pods that end are Ready until they have; a
// rollout may have put a young pod into the place of one that is gone.
func readySince(pods []corev1.Pod, since time.Time) (ready hpa.Range) {
	for i := range pods {
		pod := &pods[i]
		if !podChangedSince(pod, since) {
			ready.Low += chain.Ready(pods[i : i+1])
		}
		if changedSince(pod.CreationTimestamp.Time, since.Add(-usualGrace)) {
			ready.High++
		}
	}
	ready.High += int32(len(pods))
	return ready
}

// atRest says that the workload is as the sync saw it.
func atRest(link chain.Chain, at moment) bool {
	spec, w := link.HPA.Status.CurrentReplicas, link.Workload
	return w != nil && w.Spec == spec && w.Status == spec && !changedSince(w.Changed, lastSync(link, at))
}

// podsAtRest says that the pods are those that the sync saw, and as it did. A
// pod that is gone by now had been told to end before.
func podsAtRest(link chain.Chain, at moment) bool {
	if link.Pods == nil || !atRest(link, at) {
		return false
	}
	since, grace := lastSync(link, at), usualGrace
	for i := range link.Pods {
		pod := &link.Pods[i]
		if podChangedSince(pod, since) {
			return false
		}
		if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
			grace = max(grace, time.Duration(*own)*time.Second)
		}
	}
	return !changedSince(link.Workload.Changed, since.Add(-grace))
}

func podChangedSince(pod *corev1.Pod, since time.Time) bool {
	if changedSince(pod.CreationTimestamp.Time, since) {
		return true
	}
	if ends := pod.DeletionTimestamp; ends != nil {
		grace := time.Duration(0)
		if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
			grace = time.Duration(*seconds) * time.Second
		}
		if changedSince(ends.Add(-grace), since) {
			return true
		}
	}
	for _, condition := range pod.Status.Conditions {
		if changedSince(condition.LastTransitionTime.Time, since) {
			return true
		}
	}
	return false
}

// changedSince compares a change, known to the second, with a moment. What has
// no time, as in objects without managedFields, is taken as it is, and so is
// everything where the moment has none.
func changedSince(changed, since time.Time) bool {
	if since.Unix() < 0 {
		return false
	}
	return !changed.IsZero() && changed.Add(second).After(since)
}
