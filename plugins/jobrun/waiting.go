package jobrun

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// WaitingReason says in words why a pod does not run, or "" when it runs, has
// ended, or is merely being made.
func WaitingReason(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s is not scheduled: %s", pod.Name, condition.Message)
		}
	}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "", "ContainerCreating", "PodInitializing":
			continue
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return fmt.Sprintf("pod %s cannot pull image %s: %s", pod.Name, status.Image, firstOf(waiting.Message, waiting.Reason))
		}
		return fmt.Sprintf("pod %s waits: %s", pod.Name, firstOf(waiting.Message, waiting.Reason))
	}
	return ""
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
