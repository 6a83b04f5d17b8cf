package llmisvc_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/llmisvc"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

func parse(t *testing.T, name, text string) *llmisvc.Service {
	t.Helper()
	service, err := llmisvc.Parse(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.kserve.io/v1alpha2", "kind": "LLMInferenceService",
		"metadata": map[string]any{"name": name, "namespace": "n", "uid": "u", "generation": int64(3)},
	}}, spec(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func TestNames(t *testing.T) {
	short := parse(t, "pd", "prefill: {}")
	main, prefill := short.Main(), short.Prefill()
	got := []string{
		short.DeploymentName(main), short.DeploymentName(prefill),
		short.ScaledObjectName(main), short.ScaledObjectName(prefill),
		short.HPAName(main), short.HPAName(prefill), short.ServiceName(),
	}
	want := []string{
		"pd-kserve", "pd-kserve-prefill", "pd-kserve-keda", "pd-kserve-prefill-keda",
		"pd-kserve-hpa", "pd-kserve-prefill-hpa", "pd-kserve-workload-svc",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	long := parse(t, strings.Repeat("long-", 12)+"x", "prefill: {}")
	if name := long.ScaledObjectName(long.Prefill()); len(name) > 63 || !strings.HasSuffix(name, "-kserve-prefill-keda") {
		t.Errorf("name %s of %d characters", name, len(name))
	}
}

func TestScaledObjectCopiesKEDA(t *testing.T) {
	service := parse(t, "one", `
scaling:
  minReplicas: 2
  maxReplicas: 6
  keda:
    pollingInterval: 15
    cooldownPeriod: 180
    idleReplicaCount: 0
    fallback: {failureThreshold: 3, replicas: 2}
    advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {stabilizationWindowSeconds: 60, policies: [{type: Percent, value: 100, periodSeconds: 30}]}}}}
    triggers: [{type: prometheus, name: waiting, metricType: Value, metadata: {query: q, threshold: "2"}}]
`)
	got, err := service.ScaledObject(service.Main())
	if err != nil {
		t.Fatal(err)
	}
	policy := map[string]any{"type": "Percent", "value": int64(100), "periodSeconds": int64(30)}
	want := map[string]any{
		"minReplicaCount": int64(2), "maxReplicaCount": int64(6),
		"pollingInterval": int64(15), "cooldownPeriod": int64(180), "idleReplicaCount": int64(0),
		"fallback":       map[string]any{"failureThreshold": int64(3), "replicas": int64(2)},
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "one-kserve"},
		"advanced": map[string]any{"horizontalPodAutoscalerConfig": map[string]any{"behavior": map[string]any{
			"scaleUp": map[string]any{"stabilizationWindowSeconds": int64(60), "policies": []any{policy}},
		}}},
		"triggers": []any{map[string]any{
			"type": "prometheus", "name": "waiting", "metricType": "Value",
			"metadata": map[string]any{"query": "q", "threshold": "2"},
		}},
	}
	if diff := cmp.Diff(any(want), got.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if got.GetAnnotations() != nil {
		t.Errorf("annotations %v, want none", got.GetAnnotations())
	}
	for name, text := range map[string]string{"fixed": "replicas: 2", "wva by HPA": "scaling: {maxReplicas: 2, wva: {hpa: {}}}"} {
		t.Run(name, func(t *testing.T) {
			service := parse(t, "one", text)
			if got, err := service.ScaledObject(service.Main()); got != nil || err != nil {
				t.Errorf("ScaledObject %v, %v, want none", got, err)
			}
		})
	}
}

func TestDeploymentFails(t *testing.T) {
	tests := map[string]struct {
		spec string
		want string
	}{
		"worker":      {"worker: {containers: [{name: main}]}\ntemplate: {containers: [{name: main}]}", "LeaderWorkerSet"},
		"no template": {"{}", "no template"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			service := parse(t, "one", test.spec)
			if _, err := service.Deployment(service.Main()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
	service := parse(t, "one", tests["worker"].spec)
	if _, err := service.Deployment(service.Main()); !errors.Is(err, llmisvc.ErrMultiNode) {
		t.Errorf("error %v, want ErrMultiNode", err)
	}
}

func TestObserve(t *testing.T) {
	now := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	scaler := func(status, reason string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": status, "reason": reason},
		}}}}
	}
	deployment := func() *appsv1.Deployment {
		return &appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: "True"},
			// Never looked at: a stuck rollout is not noticed.
			{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded"},
		}}}
	}
	scaled := "scaling: {maxReplicas: 2, keda: {triggers: [{type: cron, metadata: {}}]}}"
	tests := map[string]struct {
		spec       string
		deployment *appsv1.Deployment
		scaler     *unstructured.Unstructured
		kind       string
		want       object.Condition
	}{
		"no Deployment":      {"{}", nil, nil, llmisvc.Ready, object.Condition{Status: object.False, Reason: "MinimumReplicasUnavailable"}},
		"without scaling":    {"{}", deployment(), nil, llmisvc.Ready, object.Condition{Status: object.True}},
		"no condition kept":  {"{}", deployment(), nil, llmisvc.ScalingReady, object.Condition{Status: object.Unknown}},
		"KEDA has not said":  {scaled, deployment(), scaler("Unknown", ""), llmisvc.ScalingReady, object.Condition{Status: object.False, Reason: "ScaledObjectProgressing"}},
		"KEDA is content":    {scaled, deployment(), scaler("True", "ScaledObjectReady"), llmisvc.Ready, object.Condition{Status: object.True}},
		"KEDA refuses":       {scaled, deployment(), scaler("False", "ScaledObjectCheckFailed"), llmisvc.Ready, object.Condition{Status: object.False, Reason: "ScaledObjectCheckFailed"}},
		"the HPA has no say": {"scaling: {maxReplicas: 2, wva: {hpa: {}}}", deployment(), scaler("True", ""), llmisvc.ScalingReady, object.Condition{Status: object.False, Reason: "HPAProgressing"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			service := parse(t, "one", test.spec)
			got := service.Observe(llmisvc.Status{},
				llmisvc.Observed{Role: service.Main(), Deployment: test.deployment, Scaler: test.scaler},
				llmisvc.Observed{Role: service.Prefill()}, now)
			condition := got.Conditions.Get(test.kind)
			if condition.Status != test.want.Status || condition.Reason != test.want.Reason {
				t.Errorf("%s is %s %s, want %s %s", test.kind, condition.Status, condition.Reason, test.want.Status, test.want.Reason)
			}
			if got.ObservedGeneration != 3 {
				t.Errorf("observed generation %d, want the service's 3", got.ObservedGeneration)
			}
		})
	}
}
