package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const inferenceServiceText = `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: r1, namespace: models}
spec:
  predictor:
    autoScaling:
      metrics:
      - type: Resource
        resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}
      - type: External
        external: {metric: {backend: prometheus, query: 'sum(vllm:kv_cache_usage_perc)'}, target: {type: Value, value: 0.75}}
      - type: External
        external: {metric: {backend: prometheus, query: 'sum(vllm:num_requests_waiting)'}, target: {type: Value, value: 2}}
`

const llmText = `
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: pd, namespace: models}
spec:
  scaling:
    keda:
      triggers:
      - {type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting)', threshold: "2"}}
  prefill:
    scaling:
      keda:
        triggers:
        - {type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting)', threshold: "5"}}
status:
  workloads:
    primary: {kind: Deployment, name: pd-kserve}
    prefill: {kind: Deployment, name: pd-first}
`

const (
	waitingTrigger = `{type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting)', threshold: "2"}}`
	cpuTrigger     = `{type: cpu, metadata: {value: "80"}}`
	kvTrigger      = `{type: prometheus, metadata: {query: 'sum(vllm:kv_cache_usage_perc)', threshold: "0.75"}}`
	otherTrigger   = `{type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting{a="b"})', threshold: "2"}}`
)

func scaler(target string, triggers ...string) string {
	return "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: so, namespace: models}\nspec:\n  scaleTargetRef: {name: " + target + "}\n  triggers: [" + strings.Join(triggers, ", ") + "]\n"
}

func TestOwnerOf(t *testing.T) {
	const isvcMetrics = "/spec/predictor/autoScaling/metrics/"
	isvc := record.TuningObject{APIVersion: "serving.kserve.io/v1beta1", Kind: "InferenceService", Namespace: "models", Name: "r1"}
	llm := record.TuningObject{APIVersion: "serving.kserve.io/v1alpha2", Kind: "LLMInferenceService", Namespace: "models", Name: "pd"}
	tests := map[string]struct {
		scaler, owner string
		want          record.TuningObject
		// path is that of the threshold of waiting, "" where it is kept.
		path string
		from any
		why  string
	}{
		"alone": {scaler("x", waitingTrigger), "", record.TuningObject{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Namespace: "models", Name: "so"},
			"/spec/triggers/0/metadata/threshold", "2", ""},
		"InferenceService":                     {scaler("r1-predictor", cpuTrigger, kvTrigger, waitingTrigger), inferenceServiceText, isvc, isvcMetrics + "2/external/target/value", 2.0, ""},
		"InferenceService, other order":        {scaler("r1-predictor", waitingTrigger, kvTrigger), inferenceServiceText, isvc, isvcMetrics + "2/external/target/value", 2.0, ""},
		"InferenceService without that query":  {scaler("r1-predictor", otherTrigger), inferenceServiceText, isvc, "", nil, "InferenceService r1 has no metric with its query"},
		"InferenceService without its target":  {scaler("r1-predictor", waitingTrigger), strings.Replace(inferenceServiceText, ", value: 2", "", 1), isvc, "", nil, "it has no threshold on InferenceService r1"},
		"InferenceService without any metrics": {scaler("r1-predictor", waitingTrigger), "kind: InferenceService\napiVersion: serving.kserve.io/v1beta1\nmetadata: {name: r1, namespace: models}", isvc, "", nil, "InferenceService r1 has no metric with its query"},
		"the same query twice": {scaler("r1-predictor", cpuTrigger, kvTrigger, kvTrigger, waitingTrigger),
			strings.Replace(inferenceServiceText, "      - type: External\n", "      - type: External\n        external: {metric: {query: 'sum(vllm:num_requests_waiting)'}, target: {value: 7}}\n      - type: External\n", 1),
			isvc, isvcMetrics + "3/external/target/value", 2.0, ""},
		"decode":                       {scaler("pd-kserve", waitingTrigger), llmText, llm, "/spec/scaling/keda/triggers/0/metadata/threshold", "2", ""},
		"prefill":                      {scaler("pd-kserve-prefill", waitingTrigger), llmText, llm, "/spec/prefill/scaling/keda/triggers/0/metadata/threshold", "5", ""},
		"prefill of many nodes":        {scaler("pd-kserve-mn-prefill", waitingTrigger), llmText, llm, "/spec/prefill/scaling/keda/triggers/0/metadata/threshold", "5", ""},
		"prefill as the status has it": {scaler("pd-first", waitingTrigger), llmText, llm, "/spec/prefill/scaling/keda/triggers/0/metadata/threshold", "5", ""},
		"a service called prefill":     {scaler("prefill-kserve", waitingTrigger), llmText, llm, "/spec/scaling/keda/triggers/0/metadata/threshold", "2", ""},
		"fewer triggers than scaler":   {scaler("pd-kserve", cpuTrigger, waitingTrigger), llmText, llm, "", nil, "it has no threshold on LLMInferenceService pd"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := object(t, test.scaler)
			var controller map[string]any
			if test.owner != "" {
				controller = object(t, test.owner)
			}
			owner, err := OwnerOf(so, controller)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Make(Input{ScaledObject: parsed(t, so), Owner: owner, Envelope: envelope()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Owner); diff != "" {
				t.Error(diff)
			}
			if test.path == "" {
				if len(got.Changes) != 0 || got.Kept[len(got.Kept)-1].Why != test.why {
					t.Errorf("got %+v, kept %+v, want %q", got.Changes, got.Kept, test.why)
				}
				return
			}
			if len(got.Patch) != 3 {
				t.Fatalf("got %+v, kept %+v", got.Patch, got.Kept)
			}
			want := []record.PatchOperation{{Op: "test", Path: test.path, Value: test.from}, {Op: "replace", Path: test.path, Value: "1.23"}}
			if diff := cmp.Diff(want, got.Patch[1:]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An InferenceService has no place for the metricType that a latency needs.
func TestInferenceServiceHasNoMetricType(t *testing.T) {
	latency := `{type: prometheus, metadata: {threshold: "30", query: 'histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))'}}`
	so := object(t, scaler("r1-predictor", latency))
	owner, err := OwnerOf(so, object(t, inferenceServiceText))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Make(Input{ScaledObject: parsed(t, so), Owner: owner, Envelope: envelope()})
	if err != nil || len(got.Changes) != 0 || got.Kept[0].Why != "it needs metricType Value, which InferenceService r1 cannot say" {
		t.Errorf("got %+v, %v", got.Kept, err)
	}
}

func TestOwnerOfRefuses(t *testing.T) {
	tests := map[string]struct{ target, owner, message, hint string }{
		"inherited": {"pd-kserve", "kind: LLMInferenceService\nmetadata: {name: pd}\nspec: {baseRefs: [{name: base}]}",
			"tune: LLMInferenceService pd inherits its triggers", "LLMInferenceServiceConfig"},
		"prefill inherited": {"pd-kserve-prefill", "kind: LLMInferenceService\nmetadata: {name: pd}\nspec: {scaling: {keda: {triggers: [{}]}}}",
			"tune: LLMInferenceService pd inherits its triggers", "LLMInferenceServiceConfig"},
		"wva": {"pd-kserve", "kind: LLMInferenceService\nmetadata: {name: pd}\nspec: {scaling: {wva: {keda: {}}}}",
			"tune: LLMInferenceService pd scales by wva", "workload variant autoscaler"},
		"another owner": {"x", "kind: ModelFleet\nmetadata: {name: top}",
			"tune: ModelFleet top owns the ScaledObject, and this tool does not know where it keeps thresholds", "on that object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := OwnerOf(object(t, scaler(test.target, waitingTrigger)), object(t, test.owner))
			if err == nil || err.Error() != test.message || failure.KindOf(err) != failure.Usage || !strings.Contains(failure.HintOf(err), test.hint) {
				t.Errorf("got %v, hint %q", err, failure.HintOf(err))
			}
		})
	}
}

func TestManagedBy(t *testing.T) {
	argo := func(id string) string {
		return "annotations: {argocd.argoproj.io/tracking-id: '" + id + "'}"
	}
	flux := "labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}"
	tests := map[string]struct{ metadata, want string }{
		"nobody":                       {"labels: {a: b}", ""},
		"Argo CD":                      {argo("platform:keda.sh/ScaledObject:models/r1"), "Argo CD application platform"},
		"Argo CD, copied from above":   {argo("platform:serving.kserve.io/InferenceService:models/r1"), ""},
		"Argo CD, of another name":     {argo("platform:keda.sh/ScaledObject:models/xr1"), ""},
		"Argo CD, another namespace":   {argo("platform:keda.sh/ScaledObject:other/r1"), ""},
		"Argo CD, name with a colon":   {argo("team:platform:keda.sh/ScaledObject:models/r1"), "Argo CD application team"},
		"Flux Kustomization":           {flux, "Flux Kustomization apps"},
		"Flux, reconcile off":          {flux + ", annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}", ""},
		"Flux, only made once":         {flux + ", annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}", ""},
		"Flux, merged":                 {flux + ", annotations: {kustomize.toolkit.fluxcd.io/ssa: Merge}", "Flux Kustomization apps"},
		"Flux HelmRelease before Helm": {"labels: {helm.toolkit.fluxcd.io/name: chart, app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: chart}", "Flux HelmRelease chart"},
		"Helm":                         {"labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: chart}", "Helm release chart"},
		"Helm, label alone":            {"labels: {app.kubernetes.io/managed-by: Helm}", ""},
		"Helm, annotation alone":       {"annotations: {meta.helm.sh/release-name: chart}", ""},
		"an owner above":               {"ownerReferences: [{kind: Node, name: a}, {kind: ModelFleet, name: top, controller: true}]", "ModelFleet top"},
		"an owner that does not write": {"ownerReferences: [{kind: ModelFleet, name: top}]", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			so := object(t, "kind: ScaledObject\nmetadata: {name: r1, namespace: models, "+test.metadata+"}")
			if got := managedBy(so); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
