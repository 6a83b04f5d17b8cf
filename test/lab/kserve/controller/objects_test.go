package controller_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func named(apiVersion, kind, name string, annotations, spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec,
	}}
}

// isvc is an InferenceService that serves a container, with fields of its
// predictor set or replaced.
func isvc(name string, annotations, predictor map[string]any) *unstructured.Unstructured {
	fields := map[string]any{
		"minReplicas": int64(1),
		"maxReplicas": int64(4),
		"containers": []any{map[string]any{
			"name": "kserve-container", "image": "lab.test/engine:1",
			"ports": []any{map[string]any{"name": "http", "containerPort": int64(8000), "protocol": "TCP"}},
		}},
	}
	for key, value := range predictor {
		fields[key] = value
	}
	return named("serving.kserve.io/v1beta1", "InferenceService", name, annotations, map[string]any{"predictor": fields})
}

// class is the annotations of an autoscaler class.
func class(name string) map[string]any {
	return map[string]any{
		"serving.kserve.io/deploymentMode":  "Standard",
		"serving.kserve.io/autoscalerClass": name,
	}
}

// external is autoScaling with one External metric.
func external(threshold any) map[string]any {
	return map[string]any{"autoScaling": map[string]any{
		"behavior": map[string]any{
			"scaleUp": map[string]any{
				"stabilizationWindowSeconds": int64(60),
				"policies":                   []any{map[string]any{"type": "Percent", "value": int64(100), "periodSeconds": int64(30)}},
			},
			"scaleDown": map[string]any{"stabilizationWindowSeconds": int64(240)},
		},
		"metrics": []any{map[string]any{"type": "External", "external": map[string]any{
			"metric": map[string]any{"backend": "prometheus", "serverAddress": "http://127.0.0.1:9090", "query": "sum(waiting)"},
			"target": map[string]any{"type": "Value", "value": threshold},
		}}},
	}}
}

// llm is an LLMInferenceService that serves a container, with fields of its
// spec set or replaced.
func llm(name string, spec map[string]any) *unstructured.Unstructured {
	fields := map[string]any{
		"model":    map[string]any{"name": name, "uri": "hf://lab/" + name},
		"template": template(),
	}
	for key, value := range spec {
		fields[key] = value
	}
	return named("serving.kserve.io/v1alpha2", "LLMInferenceService", name, nil, fields)
}

// config is an LLMInferenceServiceConfig.
func config(name string, spec map[string]any) *unstructured.Unstructured {
	return named("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig", name, nil, spec)
}

func template() map[string]any {
	return map[string]any{"containers": []any{map[string]any{"name": "main", "image": "lab.test/engine:1"}}}
}

// prefill is a prefill workload that scales by its own trigger.
func prefill(threshold string) map[string]any {
	return map[string]any{"template": template(), "scaling": kedaScaling(threshold)}
}

// kedaScaling has a trigger per threshold.
func kedaScaling(thresholds ...string) map[string]any {
	var triggers []any
	for i, threshold := range thresholds {
		triggers = append(triggers, map[string]any{
			"type": "prometheus", "name": fmt.Sprintf("t%d", i),
			"metadata": map[string]any{
				"serverAddress": "http://127.0.0.1:9090", "query": fmt.Sprintf("sum(t%d)", i), "threshold": threshold,
			},
		})
	}
	return map[string]any{
		"minReplicas": int64(1), "maxReplicas": int64(4),
		"keda": map[string]any{"pollingInterval": int64(15), "triggers": triggers},
	}
}

func wvaScaling() map[string]any {
	return map[string]any{
		"minReplicas": int64(1), "maxReplicas": int64(4),
		"wva": map[string]any{"variantCost": "10.0", "keda": map[string]any{"pollingInterval": int64(5)}},
	}
}
