package hpa

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// requestsOf returns the requests, in thousandths, of all pods of the selector,
// the pending and the terminating ones too: one without a request is enough for
// the metric to fail.
func (in Input) requestsOf(metric Metric) (map[string]int64, error) {
	requests := make(map[string]int64, len(in.Pods))
	for i := range in.Pods {
		request, err := in.requestOf(&in.Pods[i], metric.Container, corev1.ResourceName(metric.Name))
		if err != nil {
			return nil, err
		}
		requests[in.Pods[i].Name] = request
	}
	return requests, nil
}

// requestOf returns a pod's request. Since 1.34 what the pod itself requests
// goes before its containers (gate PodLevelResources, KEP-2837), unless one of
// these is named.
func (in Input) requestOf(pod *corev1.Pod, container string, name corev1.ResourceName) (int64, error) {
	podLevel := in.Version.since(34)
	if gate := in.Flags.PodLevelResources; gate != nil && in.Version.since(34) {
		podLevel = *gate
	}
	if podLevel && container == "" && requestsAsPod(pod) {
		request, found := podRequest(pod, name)
		if !found {
			return 0, fmt.Errorf("pod %s requests no %s", pod.Name, name)
		}
		return request, nil
	}
	total := int64(0)
	for _, c := range in.running(pod) {
		if container != "" && container != c.Name {
			continue
		}
		request, found := c.Resources.Requests[name]
		if !found {
			return 0, fmt.Errorf("container %s of pod %s requests no %s", c.Name, pod.Name, name)
		}
		total += request.MilliValue()
		if container != "" {
			return total, nil
		}
	}
	if container != "" && in.Version.since(35) {
		return 0, fmt.Errorf("pod %s has no container %s", pod.Name, container)
	}
	return total, nil
}

// running returns the containers that run for the pod's life; sidecars are
// among them since 1.29.
func (in Input) running(pod *corev1.Pod) []corev1.Container {
	containers := pod.Spec.Containers
	if !in.Version.since(29) {
		return containers
	}
	for _, c := range pod.Spec.InitContainers {
		if isSidecar(c) {
			containers = append(containers[:len(containers):len(containers)], c)
		}
	}
	return containers
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func requestsAsPod(pod *corev1.Pod) bool {
	if pod.Spec.Resources == nil {
		return false
	}
	for name := range pod.Spec.Resources.Requests {
		if isPodLevel(name) {
			return true
		}
	}
	return false
}

func isPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// podRequest is the request of a pod that has any of its own: its own of that
// name, else what its containers need at once, plus the runtime's overhead.
func podRequest(pod *corev1.Pod, name corev1.ResourceName) (milli int64, found bool) {
	var sum resource.Quantity
	if own, ok := pod.Spec.Resources.Requests[name]; ok && isPodLevel(name) {
		sum, found = own.DeepCopy(), true
	} else {
		sum, found = containersNeed(pod, name)
	}
	if overhead, ok := pod.Spec.Overhead[name]; ok {
		sum.Add(overhead)
		found = true
	}
	return sum.MilliValue(), found
}

// containersNeed is the most that containers need at any time: all of them and
// the sidecars together, or one init container with the sidecars before it.
func containersNeed(pod *corev1.Pod, name corev1.ResourceName) (most resource.Quantity, found bool) {
	for _, c := range pod.Spec.Containers {
		if request, ok := c.Resources.Requests[name]; ok {
			most.Add(request)
			found = true
		}
	}
	var sidecars, start resource.Quantity
	for _, c := range pod.Spec.InitContainers {
		request, ok := c.Resources.Requests[name]
		found = found || ok
		need := sidecars.DeepCopy()
		need.Add(request)
		if isSidecar(c) {
			most.Add(request)
			sidecars = need.DeepCopy()
		}
		if need.Cmp(start) > 0 {
			start = need
		}
	}
	if start.Cmp(most) > 0 {
		most = start
	}
	return most, found
}
