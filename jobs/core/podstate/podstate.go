// Package podstate says in words why a pod is not serving.
package podstate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Waiting says why a pod does not run, or "" when it runs, has ended, or is
// merely being made.
func Waiting(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s is not scheduled: %s", pod.Name, condition.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "", "ContainerCreating", "PodInitializing":
			continue
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return fmt.Sprintf("pod %s cannot pull image %s: %s", pod.Name, status.Image, cmp.Or(waiting.Message, waiting.Reason))
		case "CrashLoopBackOff":
			return crashed(pod, status)
		}
		return fmt.Sprintf("pod %s waits: %s", pod.Name, cmp.Or(waiting.Message, waiting.Reason))
	}
	return ""
}

// Crashing says that a container of the pod is down after limit restarts or
// more, and how it ended, or "".
func Crashing(pod *corev1.Pod, limit int32) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		down := status.State.Terminated != nil && status.State.Terminated.ExitCode != 0 || status.State.Waiting != nil
		if status.RestartCount >= limit && down {
			return crashed(pod, status)
		}
	}
	return ""
}

func crashed(pod *corev1.Pod, status corev1.ContainerStatus) string {
	last := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	return fmt.Sprintf("pod %s crashed %d times, last with %s", pod.Name, status.RestartCount, death(last))
}

// Ready says whether the pod is ready, and since when.
func Ready(pod *corev1.Pod) (corev1.PodCondition, bool) {
	condition, ok := Condition(pod, corev1.PodReady)
	return condition, ok && condition.Status == corev1.ConditionTrue
}

// Condition returns the pod's condition of the given type.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) (corev1.PodCondition, bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition, true
		}
	}
	return corev1.PodCondition{}, false
}

func death(terminated *corev1.ContainerStateTerminated) string {
	if terminated == nil {
		return "an unknown error"
	}
	text := fmt.Sprintf("exit code %d", terminated.ExitCode)
	if terminated.Reason != "" && terminated.Reason != "Error" {
		text += " (" + terminated.Reason + ")"
	}
	if terminated.Message != "" {
		text += ": " + terminated.Message
	}
	return text
}
