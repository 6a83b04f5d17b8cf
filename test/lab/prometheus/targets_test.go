package prometheus_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/test/lab/prometheus"
)

func pod(name, ip string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "llm-serving", Name: name},
		Spec: corev1.PodSpec{NodeName: "node1", Containers: []corev1.Container{
			{Name: "kserve-container", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func TestTargets(t *testing.T) {
	plain := map[string]string{"namespace": "llm-serving", "pod": "a", "container": "kserve-container", "node": "node1", "endpoint": "http", "job": "llm-serving/kserve-container"}
	with := func(extra map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{plain, extra} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	tests := map[string]struct {
		pods []corev1.Pod
		want []prometheus.Target
	}{
		"none": {want: []prometheus.Target{}},
		"plain pod": {
			pods: []corev1.Pod{pod("a", "10.244.0.11", nil)},
			want: []prometheus.Target{{Targets: []string{"10.244.0.11:8080"}, Labels: plain}},
		},
		"InferenceService": {
			pods: []corev1.Pod{pod("a", "10.244.0.11", func(p *corev1.Pod) {
				p.Labels = map[string]string{"serving.kserve.io/inferenceservice": "deepseek-r1-14b"}
				p.Annotations = map[string]string{"prometheus.io/path": "/stats"}
			})},
			want: []prometheus.Target{{Targets: []string{"10.244.0.11:8080"}, Labels: with(map[string]string{
				"inferenceservice": "deepseek-r1-14b", "service": "deepseek-r1-14b-predictor", "job": "deepseek-r1-14b-predictor", "__metrics_path__": "/stats",
			})}},
		},
		"LLMInferenceService": {
			pods: []corev1.Pod{pod("a", "10.244.0.11", func(p *corev1.Pod) {
				p.Labels = map[string]string{
					"app.kubernetes.io/part-of": "llminferenceservice", "app.kubernetes.io/name": "qwen",
					"app.kubernetes.io/component": "llminferenceservice-workload", "llm-d.ai/role": "both",
				}
			})},
			want: []prometheus.Target{{Targets: []string{"10.244.0.11:8080"}, Labels: with(map[string]string{
				"llm_isvc_name": "qwen", "llm_isvc_component": "llminferenceservice-workload", "llm_isvc_role": "both",
				"job": "llm-serving/kserve-llm-isvc-vllm-engine-default",
			})}},
		},
		"not to be scraped": {
			pods: []corev1.Pod{
				pod("pending", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
				pod("done", "10.244.0.12", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
				pod("going", "10.244.0.13", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }),
				pod("other port", "10.244.0.14", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].Name = "grpc" }),
			},
			want: []prometheus.Target{},
		},
		"in order": {
			pods: []corev1.Pod{
				pod("a", "10.244.0.12", nil),
				pod("a", "10.244.0.11", nil),
			},
			want: []prometheus.Target{{Targets: []string{"10.244.0.11:8080"}, Labels: plain}, {Targets: []string{"10.244.0.12:8080"}, Labels: plain}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, prometheus.Targets(tt.pods)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRender(t *testing.T) {
	tests := map[string]struct {
		targets []prometheus.Target
		want    string
	}{
		"none": {targets: prometheus.Targets(nil), want: "[]\n"},
		"one": {
			targets: []prometheus.Target{{Targets: []string{"10.244.0.11:8080"}, Labels: map[string]string{"pod": "a"}}},
			want:    "[\n {\n  \"targets\": [\n   \"10.244.0.11:8080\"\n  ],\n  \"labels\": {\n   \"pod\": \"a\"\n  }\n }\n]\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := prometheus.Render(tt.targets)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
}
