package chain

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// podsOf returns the pods of a namespace that a selector of equalities matches, nil where the
// selector says more than that: then the pods are unknown.
func podsOf(pods []corev1.Pod, namespace, selector string) []corev1.Pod {
	wanted := map[string]string{}
	for term := range strings.SplitSeq(selector, ",") {
		key, value, found := strings.Cut(term, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(strings.TrimPrefix(value, "="))
		if !found || key == "" || strings.ContainsAny(key+value, "!()= ") {
			return nil
		}
		wanted[key] = value
	}
	matched := []corev1.Pod{}
	for i := range pods {
		if inOne(pods[i].Namespace, namespace) && hasAll(pods[i].Labels, wanted) {
			matched = append(matched, pods[i])
		}
	}
	return matched
}

func hasAll(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Ready counts pods as the HPA does for a Value metric: running and Ready,
// those that terminate included.
func Ready(pods []corev1.Pod) int32 {
	var ready int32
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready
}
