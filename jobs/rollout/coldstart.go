package rollout

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/podstate"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// starts measures the pods that were made since the rollout began. Pod times
// have whole seconds, so a phase can be off by one; the sum is not.
func (r *run) starts(pods []corev1.Pod, answered time.Time) []record.ReplicaStart {
	replicas := []record.ReplicaStart{}
	for i := range pods {
		if pod := &pods[i]; r.isNew(pod) {
			if start, ok := measure(pod); ok {
				replicas = append(replicas, start)
			}
		}
	}
	// With one replica there is no doubt who answered.
	if len(replicas) == 1 && len(pods) == 1 {
		only := &replicas[0]
		seconds := max(0, answered.Sub(only.Created).Seconds()-only.TotalSeconds)
		only.FirstTokenSeconds = &seconds
		only.TotalSeconds += seconds
	}
	return replicas
}

// measure splits the start of a pod into its phases; ok is false for a pod that
// is not ready. The engine is the pod's first container, as in KServe.
func measure(pod *corev1.Pod) (start record.ReplicaStart, ok bool) {
	ready, ok := podstate.Ready(pod)
	if !ok || len(pod.Spec.Containers) == 0 {
		return start, false
	}
	engine := pod.Spec.Containers[0]
	start = record.ReplicaStart{Pod: pod.Name, Node: pod.Spec.NodeName, Image: engine.Image, Created: pod.CreationTimestamp.UTC()}
	at := pod.CreationTimestamp.Time
	// The clocks of API server, scheduler and node can differ: no phase is
	// below 0, and each begins where the one before ended.
	phase := func(end time.Time) *float64 {
		took := max(0, end.Sub(at))
		at = at.Add(took)
		seconds := took.Seconds()
		return &seconds
	}
	if scheduled, ok := podstate.Condition(pod, corev1.PodScheduled); ok && scheduled.Status == corev1.ConditionTrue {
		start.QueuedSeconds = phase(scheduled.LastTransitionTime.Time)
	}
	// The kubelet sorts the statuses by name.
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.Name == engine.Name })
	if i >= 0 && pod.Status.ContainerStatuses[i].State.Running != nil {
		start.PreparedSeconds = phase(pod.Status.ContainerStatuses[i].State.Running.StartedAt.Time)
	}
	start.LoadedSeconds = phase(ready.LastTransitionTime.Time)
	start.TotalSeconds = at.Sub(pod.CreationTimestamp.Time).Seconds()
	return start, true
}
