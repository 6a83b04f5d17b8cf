package hpa

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Flags of the controller for metrics of pods, as they are unless set.
const (
	DefaultCPUInitialization = 300 * time.Second
	DefaultReadinessDelay    = 30 * time.Second
)

// Sample is what a metrics API reports of one pod.
type Sample struct {
	// Milli is the usage in thousandths.
	Milli int64
	// Time is the end of the measurement, Window how long it took.
	Time   time.Time
	Window time.Duration
}

// standing is what a pod counts as in one metric.
type standing uint8

const (
	// ignored pods are on their way out.
	ignored standing = 1 << iota
	// unready pods have no sample that could be trusted: they have not started,
	// or, for CPU, they are still starting.
	unready
	// missing pods should have a sample, and have none.
	missing
	// counted pods are those whose samples make the average.
	counted
)

// standingOf sorts a pod as the controller does; the order of the tests is its
// own. sample is nil where there is none.
func (in Input) standingOf(pod *corev1.Pod, cpu bool, now time.Time, sample *Sample) standing {
	switch {
	case in.goes(pod):
		return ignored
	case pod.Status.Phase == corev1.PodPending:
		return unready
	case sample == nil:
		return missing
	case cpu && in.starting(pod, now, *sample):
		return unready
	}
	return counted
}

// goes says whether a pod is on its way out. Pods that have succeeded are
// among those since 1.38.
func (in Input) goes(pod *corev1.Pod) bool {
	phase := pod.Status.Phase
	return pod.DeletionTimestamp != nil || phase == corev1.PodFailed || (phase == corev1.PodSucceeded && in.Version.since(38))
}

// starting says whether the CPU usage of a pod is that of its start. Within the
// initialization period it is until one window after the pod became Ready;
// later only where the pod never became Ready.
func (in Input) starting(pod *corev1.Pod, now time.Time, sample Sample) bool {
	ready := readiness(pod)
	if ready == nil || pod.Status.StartTime == nil {
		return true
	}
	notReady := ready.Status == corev1.ConditionFalse
	started, since := pod.Status.StartTime.Time, ready.LastTransitionTime.Time
	if started.Add(in.Flags.cpuInitialization()).After(now) {
		return notReady || sample.Time.Before(since.Add(sample.Window))
	}
	return notReady && started.Add(in.Flags.readinessDelay()).After(since)
}

// possible returns all that a pod may have counted as in a sync of which the
// samples are unknown. With complete every pod that ran had one.
func (in Input) possible(pod *corev1.Pod, cpu, complete bool) standing {
	early := in.Now.Add(-in.Slack)
	if in.Slack > 0 && changedAfter(pod, early) && !in.goes(pod) {
		return unready | missing | counted
	}
	could := in.standingOf(pod, cpu, in.Now, nil)
	if could != missing {
		return could
	}
	if complete {
		could = 0
	}
	for _, now := range []time.Time{early, in.Now} {
		for _, sample := range []Sample{{}, {Time: in.Now.Add(in.Flags.cpuInitialization())}} {
			could |= in.standingOf(pod, cpu, now, &sample)
		}
	}
	return could
}

func changedAfter(pod *corev1.Pod, t time.Time) bool {
	if started := pod.Status.StartTime; started != nil && started.After(t) {
		return true
	}
	ready := readiness(pod)
	return ready != nil && ready.LastTransitionTime.After(t)
}

func readiness(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// ReadyPods counts pods as a target Value does: running and Ready, those that
// terminate included.
func ReadyPods(pods []corev1.Pod) int32 {
	var n int32
	for i := range pods {
		ready := readiness(&pods[i])
		if pods[i].Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

func (f Flags) cpuInitialization() time.Duration {
	if f.CPUInitialization != nil {
		return *f.CPUInitialization
	}
	return DefaultCPUInitialization
}

func (f Flags) readinessDelay() time.Duration {
	if f.ReadinessDelay != nil {
		return *f.ReadinessDelay
	}
	return DefaultReadinessDelay
}
