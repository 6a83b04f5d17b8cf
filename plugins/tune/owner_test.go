package tune

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

const inferenceService = `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: chat, annotations: {serving.kserve.io/autoscalerClass: keda}}
spec:
  predictor:
    containers: [{name: kserve-container, image: example.test/engine:1}]
    autoScaling:
      metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}
      - type: External
        external:
          metric: {backend: prometheus, serverAddress: "http://prometheus:9090", query: 'sum(vllm:num_requests_waiting{pod=~"r1-.*"})'}
          target: {type: Value, value: 2}
`

// owned makes the ScaledObject r1 a child of owner, as KServe makes it.
func (c *cluster) owned(text string, owner *unstructured.Unstructured) {
	c.t.Helper()
	c.create("so", strings.Replace(text, "annotations: {}", "ownerReferences: [{apiVersion: "+owner.GetAPIVersion()+", kind: "+owner.GetKind()+
		", name: "+owner.GetName()+", uid: "+string(owner.GetUID())+", controller: true}]", 1))
}

// The change goes to the parent, whose controller carries it down: the test
// plays KServe and KEDA. A number is a number again afterwards.
func TestInferenceService(t *testing.T) {
	c := start(t, "kserve")
	before := c.create("isvc", inferenceService)
	c.owned(scaledObject, before)
	c.create("hpa", hpa("keda-hpa-r1", "2", "30", "AverageValue"))
	plan := ""
	step := func(args []string, wantParent any, down, hpaTarget string) {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- c.carryDown(t.Context(), wantParent, down, hpaTarget) }()
		got := c.tune(apiserver.Admin, append(args, "--apply", "-o", "json", "--settle-timeout", "30s")...)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got.err != nil {
			t.Fatal(got.err)
		}
		plan = got.stdout
	}
	step([]string{"so/r1", "--from", envelope(t)}, "1.23", "1.23", "1230m")
	wantLines(t, plan, "it needs metricType Value, which InferenceService chat cannot say", `"kind": "InferenceService"`,
		`"path": "/spec/predictor/autoScaling/metrics/1/external/target/value"`)
	step([]string{"--undo", write(t, "plan.json", []byte(plan))}, int64(2), "2.0", "2")
	if diff := cmp.Diff(before.Object["spec"], c.spec("isvc", "chat")); diff != "" {
		t.Error(diff)
	}
}

// The parent is named, and has no scaler of its own making: the ScaledObject
// made by hand for its Deployment is changed.
func TestExternalClass(t *testing.T) {
	c := start(t, "external")
	isvc := c.create("isvc", strings.Replace(inferenceService, "autoscalerClass: keda", "autoscalerClass: external", 1))
	c.server.Kubectl(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: r1-predictor, namespace: external, ownerReferences: [{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, name: chat, uid: `+string(isvc.GetUID())+`, controller: true}]},
		spec: {selector: {matchLabels: {app: r1}}, template: {metadata: {labels: {app: r1}}, spec: {containers: [{name: engine, image: "example.test/engine:1"}]}}}}`, "apply", "-f", "-")
	c.create("so", scaledObject)
	got := c.tune(apiserver.Admin, "isvc/chat", "--from", envelope(t))
	if got.err != nil {
		t.Fatal(got.err)
	}
	wantLines(t, got.stdout, "ScaledObject r1, measured", "--- live/ScaledObject/r1")
}

const llmInferenceService = `
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: pd}
spec:
  model: {uri: "s3://models/x", name: x}
  scaling: &scaling
    minReplicas: 1
    maxReplicas: 4
    keda:
      triggers:
      - type: prometheus
        metadata: {serverAddress: "http://prometheus:9090", threshold: "2.0", query: 'sum(vllm:num_requests_waiting{pod=~"r1-.*"})'}
  prefill:
    scaling: *scaling
`

func TestLLMInferenceService(t *testing.T) {
	c := start(t, "llm")
	owner := c.create("llmisvc", llmInferenceService)
	c.owned(strings.Replace(scaledObject, "r1-predictor", "pd-kserve-prefill", 1), owner)
	got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "-o", "json")
	if got.err != nil {
		t.Fatal(got.err)
	}
	wantLines(t, got.stdout, `"path": "/spec/prefill/scaling/keda/triggers/0/metadata/threshold"`, "it has no threshold on LLMInferenceService pd")
}

func TestOwnerRefused(t *testing.T) {
	c := start(t, "refused")
	inherits := c.create("llmisvc", "{apiVersion: serving.kserve.io/v1alpha2, kind: LLMInferenceService, metadata: {name: pd}, spec: {model: {uri: 's3://models/x', name: x}, baseRefs: [{name: base}]}}")
	c.owned(scaledObject, inherits)
	wantFailure(t, c.tune(apiserver.Admin, "so/r1", "--from", envelope(t)), failure.Usage, "LLMInferenceService pd inherits its triggers", "LLMInferenceServiceConfig")

	c.server.Kubectl(t, "", "delete", "so", "r1", "-n", c.namespace)
	owner := c.create("hpa", hpa("boss", "2", "", ""))
	c.owned(scaledObject, owner)
	wantFailure(t, c.tune(apiserver.Admin, "so/r1", "--from", envelope(t)), failure.Usage, "HorizontalPodAutoscaler boss owns the ScaledObject", "on that object")

	// The owner is named but gone.
	c.server.Kubectl(t, "", "delete", "hpa", "boss", "-n", c.namespace)
	wantFailure(t, c.tune(apiserver.Admin, "so/r1", "--from", envelope(t)), failure.NotFound, "get HorizontalPodAutoscaler refused/boss", "")
}
