package predictor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	parsed := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &parsed.Object); err != nil {
		t.Fatal(err)
	}
	return parsed
}

const own = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: r1, labels: {team: a}}
spec:
  replicas: 3
  template:
    spec:
      serviceAccountName: old
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers:
      - name: proxy
        args: [--listen, "8080"]
      - name: engine
        image: example.test/old:1
        args: [--model, org/model, --served-model-name, chat]
        env:
        - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}
        - {name: AWS_REGION, value: old}
        - {name: AWS_ACCESS_KEY_ID, value: plain}
        resources: {requests: {cpu: "2", example.test/nic: "1"}, limits: {cpu: "2", memory: 1Gi}}
`

// Only what is said changes: the engine is the container with the model.
func TestEdit(t *testing.T) {
	got := object(t, own)
	err := Edit(got, Settings{
		Name: "ignored", Namespace: "ignored", ModelURI: "s3://new/model", Args: []string{"--port=8000"},
		Env:       map[string]string{"AWS_REGION": "eu", "A": "b"},
		SecretEnv: map[string]SecretKey{"AWS_ACCESS_KEY_ID": {"s3", "id"}},
		CPU:       "4", Memory: "24Gi", GPU: "2", ServiceAccount: "new", NodeSelector: map[string]string{"gpu": "l4"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: r1, labels: {team: a}}
spec:
  replicas: 3
  template:
    spec:
      serviceAccountName: new
      nodeSelector: {gpu: l4}
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers:
      - name: proxy
        args: [--listen, "8080"]
      - name: engine
        image: example.test/old:1
        args: [--model, "s3://new/model", --served-model-name, chat, --port=8000, --load-format, runai_streamer]
        env:
        - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}
        - {name: A, value: b}
        - {name: AWS_REGION, value: eu}
        - {name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: s3, key: id}}}
        resources: {requests: {cpu: "4", memory: 24Gi, nvidia.com/gpu: "2", example.test/nic: "1"}, limits: {memory: 24Gi, nvidia.com/gpu: "2"}}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
	if got := ServedModel([]*unstructured.Unstructured{object(t, "kind: Service"), got}); got != "chat" {
		t.Errorf("served as %q", got)
	}
}

// Without settings but the model, nothing else appears, not even empty fields.
func TestEditLeavesTheRest(t *testing.T) {
	text := `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: r1}
spec: {predictor: {containers: [{name: kserve-container, args: ["s3://old/model", --load-format, runai_streamer]}]}}
`
	got := object(t, text)
	if err := Edit(got, Settings{ModelURI: "s3://new/model"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, strings.Replace(text, "old", "new", 1)).Object, got.Object); diff != "" {
		t.Error(diff)
	}
}

func TestEditRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"no containers":     {"kind: Deployment\nmetadata: {name: r1}\nspec: {template: {spec: {}}}", "Deployment r1 has no containers at spec.template.spec"},
		"of another form":   {"kind: InferenceService\nmetadata: {name: r1}\nspec: {predictor: {containers: x}}", "InferenceService r1 has no containers at spec.predictor"},
		"no object":         {"kind: InferenceService\nmetadata: {name: r1}\nspec: {predictor: {containers: [x]}}", "InferenceService r1: its first container is not an object"},
		"number in args":    {"kind: InferenceService\nmetadata: {name: r1}\nspec: {predictor: {containers: [{args: [s3://a/b, --port, 8000]}]}}", "InferenceService r1: args[2] is 8000, not a string: quote it"},
		"args not a list":   {"kind: InferenceService\nmetadata: {name: r1}\nspec: {predictor: {containers: [{args: s3://a/b}]}}", "InferenceService r1: args is not a list"},
		"containers absent": {"kind: InferenceService\nmetadata: {name: r1}\nspec: {predictor: {model: {storageUri: s3://a/b}}}", "InferenceService r1 has no containers at spec.predictor"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := Edit(object(t, test.text), Settings{ModelURI: "s3://new/model"}); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestReferencesModel(t *testing.T) {
	tests := map[string]struct {
		text string
		want bool
	}{
		"Deployment":          {own, true},
		"InferenceService":    {"kind: InferenceService\nspec: {predictor: {containers: [{args: [s3://a/b]}]}}", true},
		"StatefulSet":         {strings.Replace(own, "Deployment", "StatefulSet", 1), false},
		"model by storageUri": {"kind: InferenceService\nspec: {predictor: {model: {storageUri: s3://a/b}}}", false},
		"no model":            {strings.Replace(own, "--model, org/model, ", "", 1), false},
		"Service":             {"kind: Service\nspec: {ports: []}", false},
		"container no object": {"kind: InferenceService\nspec: {predictor: {containers: [x]}}", false},
	}
	for name, test := range tests {
		if got := ReferencesModel(object(t, test.text)); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestURLAndSelector(t *testing.T) {
	if got := URL(KindInferenceService, "r1", "models"); got != "http://r1-predictor.models.svc" {
		t.Errorf("got %s", got)
	}
	if got := URL(KindDeployment, "r1", "models"); got != "http://r1.models.svc" {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff(map[string]string{"serving.kserve.io/inferenceservice": "r1", "component": "predictor"}, Selector(KindInferenceService, "r1")); diff != "" {
		t.Error(diff)
	}
}
