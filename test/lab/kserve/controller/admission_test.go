package controller_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is refused, and what is let through although it should not be, is the
// same with both sets of definitions.
func TestAdmission(t *testing.T) {
	scaling := func(changes map[string]any) map[string]any {
		fields := kedaScaling("2")
		for key, value := range changes {
			fields[key] = value
		}
		return map[string]any{"scaling": fields}
	}
	keda := func(changes map[string]any) map[string]any {
		fields := kedaScaling("2")["keda"].(map[string]any)
		for key, value := range changes {
			fields[key] = value
		}
		return scaling(map[string]any{"keda": fields})
	}
	tests := map[string]struct {
		resource schema.GroupVersionResource
		object   *unstructured.Unstructured
		// refused is part of the message; empty where the object is accepted.
		refused string
	}{
		"isvc: unknown class":         {inferenceServices, isvc("x", class("custom"), nil), "custom"},
		"isvc: min above max":         {inferenceServices, isvc("x", nil, map[string]any{"minReplicas": int64(5)}), "minReplicas"},
		"isvc: max unset":             {inferenceServices, isvc("x", nil, map[string]any{"minReplicas": int64(5), "maxReplicas": int64(0)}), ""},
		"isvc: threshold no number":   {inferenceServices, isvc("x", class("keda"), external("abc")), "value"},
		"isvc: threshold empty":       {inferenceServices, isvc("x", class("keda"), external("")), "value"},
		"isvc: threshold a number":    {inferenceServices, isvc("x", class("keda"), external(int64(3))), ""},
		"isvc: threshold a string":    {inferenceServices, isvc("x", class("keda"), external("0.75")), ""},
		"isvc: threshold negative":    {inferenceServices, isvc("x", class("keda"), external("-1")), ""},
		"isvc: scaleMetric with keda": {inferenceServices, isvc("x", class("keda"), map[string]any{"scaleMetric": "cpu"}), "scaleMetric"},
		"isvc: no predictor": {inferenceServices,
			named("serving.kserve.io/v1beta1", "InferenceService", "x", nil, map[string]any{}), "predictor"},

		"llm: threshold no number":        {llmServices, llm("x", map[string]any{"scaling": kedaScaling("abc")}), ""},
		"llm: threshold missing":          {llmServices, llm("x", keda(map[string]any{"triggers": []any{map[string]any{"type": "prometheus", "metadata": map[string]any{}}}})), ""},
		"llm: threshold a number":         {llmServices, llm("x", keda(map[string]any{"triggers": []any{map[string]any{"type": "prometheus", "metadata": map[string]any{"threshold": int64(2)}}}})), "threshold"},
		"llm: no triggers":                {llmServices, llm("x", keda(map[string]any{"triggers": []any{}})), "triggers"},
		"llm: replicas and scaling":       {llmServices, llm("x", map[string]any{"replicas": int64(1), "scaling": kedaScaling("2")}), "replicas and scaling are mutually exclusive"},
		"llm: replicas and none":          {llmServices, llm("x", map[string]any{"replicas": int64(0)}), ""},
		"llm: prefill replicas, scaling":  {llmServices, llm("x", map[string]any{"prefill": map[string]any{"replicas": int64(1), "scaling": kedaScaling("2")}}), "replicas and scaling are mutually exclusive"},
		"llm: min above max":              {llmServices, llm("x", scaling(map[string]any{"minReplicas": int64(5)})), "minReplicas cannot exceed maxReplicas"},
		"llm: min zero":                   {llmServices, llm("x", scaling(map[string]any{"minReplicas": int64(0)})), "minReplicas"},
		"llm: wva and keda":               {llmServices, llm("x", scaling(map[string]any{"wva": wvaScaling()["wva"]})), "wva and keda are mutually exclusive"},
		"llm: neither wva nor keda":       {llmServices, llm("x", map[string]any{"scaling": map[string]any{"maxReplicas": int64(2)}}), "wva"},
		"llm: wva without an actuator":    {llmServices, llm("x", map[string]any{"scaling": map[string]any{"maxReplicas": int64(2), "wva": map[string]any{}}}), "hpa"},
		"llm: idle not below min":         {llmServices, llm("x", keda(map[string]any{"idleReplicaCount": int64(1)})), "idleReplicaCount must be less than minReplicas"},
		"llm: idle below min":             {llmServices, llm("x", keda(map[string]any{"idleReplicaCount": int64(0)})), ""},
		"llm: decode keda, prefill wva":   {llmServices, llm("x", map[string]any{"scaling": kedaScaling("2"), "prefill": map[string]any{"scaling": wvaScaling()}}), "must use the same scaling mode"},
		"llm: decode keda, prefill fixed": {llmServices, llm("x", map[string]any{"scaling": kedaScaling("2"), "prefill": map[string]any{"replicas": int64(1)}}), ""},
		"llm: the HPA's name": {llmServices, llm("x", keda(map[string]any{"advanced": map[string]any{
			"horizontalPodAutoscalerConfig": map[string]any{"name": "mine"}}})), "must not be set"},
		"llm: scaling modifiers": {llmServices, llm("x", keda(map[string]any{"advanced": map[string]any{
			"scalingModifiers": map[string]any{"formula": "t0", "target": "2"}}})), ""},
		"llm: scaling modifiers with wva": {llmServices, llm("x", map[string]any{"scaling": map[string]any{"maxReplicas": int64(2),
			"wva": map[string]any{"keda": map[string]any{"advanced": map[string]any{
				"scalingModifiers": map[string]any{"formula": "t0", "target": "2"}}}}}}), "must not be set"},
	}
	eachCluster(t, func(t *testing.T, on env) {
		on = on.in(t)
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				_, err := on.of(test.resource).Create(t.Context(), test.object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				switch {
				case test.refused == "" && err != nil:
					t.Errorf("refused: %v", err)
				case test.refused == "":
				case err == nil:
					t.Errorf("accepted, want a refusal with %q", test.refused)
				case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err):
					t.Errorf("refused for another reason: %v", err)
				case !strings.Contains(err.Error(), test.refused):
					t.Errorf("refused without %q: %v", test.refused, err)
				}
			})
		}
	})
}

// A value that someone else wrote is in the way of a server-side apply of the
// whole list, not of one trigger.
func TestTriggersAreOneField(t *testing.T) {
	eachCluster(t, func(t *testing.T, on env) {
		on = on.in(t)
		service := llm("one", map[string]any{"scaling": kedaScaling("2", "3")})
		on.make(t, llmServices, service)
		mine := llm("one", map[string]any{"scaling": kedaScaling("2", "4")})
		_, err := on.of(llmServices).Apply(t.Context(), "one", mine, metav1.ApplyOptions{FieldManager: "tuner"})
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.scaling.keda.triggers") {
			t.Errorf("error %v, want a conflict over the list", err)
		}
	})
}
