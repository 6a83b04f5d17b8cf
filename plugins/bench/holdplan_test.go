package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	var read unstructured.Unstructured
	if err == nil {
		err = read.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &read
}

const (
	aScaledObject = "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, namespace: llm, annotations: {a: b}}, spec: {scaleTargetRef: {name: web}, minReplicaCount: 1, maxReplicaCount: 6}}"
	anHPA         = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: llm}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 6}}"
	anISVC        = "{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: i, namespace: llm}, spec: {predictor: {maxReplicas: 6}}}"
	anLLMISVC     = "{apiVersion: serving.kserve.io/v1alpha2, kind: LLMInferenceService, metadata: {name: l, namespace: llm}, spec: {scaling: {minReplicas: 1, maxReplicas: 6}}}"
	inherited     = "{apiVersion: serving.kserve.io/v1alpha2, kind: LLMInferenceService, metadata: {name: l, namespace: llm}, spec: {baseRefs: [{name: x}]}}"
	another       = "{apiVersion: example.test/v1, kind: Model, metadata: {name: m, namespace: llm}}"
)

// TestHoldPlan: who owns the replicas, decides where they are held
// (facts of the owners' real controllers).
func TestHoldPlan(t *testing.T) {
	for name, test := range map[string]struct {
		scaler, owner string
		replicas      int32
		object        string
		changes       string
		err           string
	}{
		"a ScaledObject":            {aScaledObject, "", 2, "scaledobjects web", "metadata.annotations.autoscaling.keda.sh/paused-replicas null 2; metadata.annotations.kubectl-inference.io/hold null r", ""},
		"that of an isvc":           {aScaledObject, anISVC, 1, "scaledobjects web", "metadata.annotations.autoscaling.keda.sh/paused-replicas null 1; metadata.annotations.kubectl-inference.io/hold null r", ""},
		"that of an llmisvc":        {aScaledObject, anLLMISVC, 3, "llminferenceservices l", "spec.scaling.minReplicas 1 3; spec.scaling.maxReplicas 6 3", ""},
		"an HPA":                    {anHPA, "", 2, "horizontalpodautoscalers web", "spec.minReplicas 1 2; spec.maxReplicas 6 2; metadata.annotations.kubectl-inference.io/hold null r", ""},
		"the HPA of an isvc":        {anHPA, anISVC, 2, "inferenceservices i", "spec.predictor.minReplicas null 2; spec.predictor.maxReplicas 6 2", ""},
		"an llmisvc that inherits":  {aScaledObject, inherited, 2, "", "", "has no range of its own"},
		"an owner nobody knows":     {aScaledObject, another, 2, "", "", "Model m made it"},
		"nothing is there to serve": {aScaledObject, "", 0, "", "", "no replica"},
	} {
		t.Run(name, func(t *testing.T) {
			found := read(object(t, test.scaler))
			found.owner = object(t, test.owner)
			if !found.live() || found.minimum != 1 || found.maximum != 6 {
				t.Fatalf("%+v", found)
			}
			got, err := holdPlan(found, record.BenchPlan{Run: "r"}, "inference-bench-r", test.replicas)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var changes []string
			for _, change := range got.Changes {
				text := []string{strings.Join(change.Path, ".")}
				for _, value := range []any{change.Before, change.Held} {
					data, err := yaml.Marshal(value)
					if err != nil {
						t.Fatal(err)
					}
					text = append(text, strings.Trim(strings.TrimSpace(string(data)), `"`))
				}
				changes = append(changes, strings.Join(text, " "))
			}
			if diff := cmp.Diff(test.changes, strings.Join(changes, "; ")); diff != "" || got.Object.Resource+" "+got.Object.Name != test.object {
				t.Errorf("%+v %s", got.Object, diff)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLive(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"ranges":             {aScaledObject, true},
		"one size":           {strings.Replace(aScaledObject, "maxReplicaCount: 6", "maxReplicaCount: 1", 1), false},
		"defaults":           {"{kind: ScaledObject, metadata: {name: a}, spec: {scaleTargetRef: {name: web}}}", true},
		"paused":             {strings.Replace(aScaledObject, "a: b", annotationPaused+`: "true"`, 1), false},
		"paused, not really": {strings.Replace(aScaledObject, "a: b", annotationPaused+`: "false"`, 1), true},
		"held":               {strings.Replace(aScaledObject, "a: b", annotationPausedReplicas+`: "2"`, 1), false},
		"an HPA of one size": {strings.Replace(anHPA, "minReplicas: 1", "minReplicas: 6", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(object(t, test.text)).live(); got != test.want {
				t.Errorf("live: %v", got)
			}
		})
	}
}
