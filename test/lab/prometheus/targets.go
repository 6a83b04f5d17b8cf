// Package prometheus runs Debian's Prometheus in the lab. That build has no
// Kubernetes discovery, so a loop of ours writes the pods to scrape to a file
// that it watches (file_sd).
package prometheus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// portName marks the container port to scrape, as the seed's ServiceMonitor
// and KServe's PodMonitors do.
const portName = "http"

// Target is one entry of a file_sd file.
type Target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Targets returns what to scrape: every running pod with a container port named
// http, with the labels that the Prometheus operator would give it.
func Targets(pods []corev1.Pod) []Target {
	list := []Target{} // an empty list, not null, when nothing runs
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || pod.DeletionTimestamp != nil {
			continue
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if port.Name == portName {
					list = append(list, Target{
						Targets: []string{net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))},
						Labels:  labels(&pod, container.Name),
					})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b Target) int { return cmp.Compare(a.Targets[0], b.Targets[0]) })
	return list
}

// labels are those of the Prometheus operator (namespace, pod, container,
// endpoint, job, and node), and those that tell which model the pod serves: of
// an InferenceService its name, of an LLMInferenceService the three that
// KServe's PodMonitor copies.
func labels(pod *corev1.Pod, container string) map[string]string {
	l := map[string]string{
		"namespace": pod.Namespace, "pod": pod.Name, "container": container, "node": pod.Spec.NodeName,
		"endpoint": portName, "job": pod.Namespace + "/" + container,
	}
	if path := pod.Annotations["prometheus.io/path"]; path != "" {
		l["__metrics_path__"] = path
	}
	if name := pod.Labels["serving.kserve.io/inferenceservice"]; name != "" {
		l["inferenceservice"] = name
		// A ServiceMonitor's job is the Service.
		l["service"], l["job"] = name+"-predictor", name+"-predictor"
	}
	if pod.Labels["app.kubernetes.io/part-of"] == "llminferenceservice" {
		l["llm_isvc_name"] = pod.Labels["app.kubernetes.io/name"]
		l["llm_isvc_component"] = pod.Labels["app.kubernetes.io/component"]
		l["llm_isvc_role"] = pod.Labels["llm-d.ai/role"]
		l["job"] = pod.Namespace + "/kserve-llm-isvc-vllm-engine-default"
	}
	return l
}

// Render writes the file_sd file's content.
func Render(targets []Target) ([]byte, error) {
	data, err := json.MarshalIndent(targets, "", " ")
	if err != nil {
		return nil, fmt.Errorf("render scrape targets: %w", err)
	}
	return append(data, '\n'), nil
}
