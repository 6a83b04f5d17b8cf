package isvc_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/isvc"
	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// parse reads an InferenceService of the predictor given in YAML, with a label
// and an annotation of its own.
func parse(t *testing.T, predictor string) *isvc.Service {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(predictor), &fields); err != nil {
		t.Fatal(err)
	}
	service, err := isvc.Parse(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
		"metadata": map[string]any{
			"name": "m", "namespace": "n", "uid": "u",
			"labels": map[string]any{"team": "a"},
			"annotations": map[string]any{
				"serving.kserve.io/deploymentMode":                 "RawDeployment",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
		},
		"spec": map[string]any{"predictor": fields},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func TestDeployment(t *testing.T) {
	service := parse(t, `
minReplicas: 2
labels: {tier: gpu}
nodeSelector: {gpu: "true"}
tolerations: [{key: nvidia.com/gpu, operator: Exists}]
serviceAccountName: reader
containers:
- name: kserve-container
  image: lab.test/engine:1
  env: [{name: A, value: "1"}]
  ports: [{containerPort: 8000}]
  readinessProbe: {httpGet: {path: /health, port: 8000}}
`)
	got, err := service.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		"app": "isvc.m-predictor", "component": "predictor", "serving.kserve.io/inferenceservice": "m", "team": "a", "tier": "gpu",
	}
	annotations := map[string]string{"serving.kserve.io/deploymentMode": "Standard"}
	for where, pair := range map[string][2]map[string]string{
		"labels":               {labels, got.Labels},
		"template labels":      {labels, got.Spec.Template.Labels},
		"annotations":          {annotations, got.Annotations},
		"template annotations": {annotations, got.Spec.Template.Annotations},
		"selector":             {{"app": "isvc.m-predictor"}, got.Spec.Selector.MatchLabels},
		"node selector":        {{"gpu": "true"}, got.Spec.Template.Spec.NodeSelector},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
	if *got.Spec.Replicas != 2 || got.Spec.Template.Spec.ServiceAccountName != "reader" {
		t.Errorf("replicas %d, account %s", *got.Spec.Replicas, got.Spec.Template.Spec.ServiceAccountName)
	}
	env := []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "INFERENCE_SERVICE_NAME", Value: "m"}}
	if diff := cmp.Diff(env, got.Spec.Template.Spec.Containers[0].Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	again, err := service.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("building it twice differs:\n%s", diff)
	}
}

func TestModelServer(t *testing.T) {
	tests := map[string]struct {
		predictor string
		port      int32
		err       error
	}{
		"container without a port": {"containers: [{image: a}]", 8080, nil},
		"model with an image":      {"model: {image: a, modelFormat: {name: vllm}, ports: [{containerPort: 9000}]}", 9000, nil},
		"model beside a container": {"model: {image: a, ports: [{containerPort: 9000}]}\ncontainers: [{name: agent, image: b, ports: [{containerPort: 1}]}]", 9000, nil},
		"model without an image":   {"model: {modelFormat: {name: vllm}, storageUri: s3://m}", 8080, isvc.ErrNoRuntime},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			service := parse(t, test.predictor)
			deployment, err := service.Deployment()
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if got := service.Service().Spec.Ports[0].TargetPort.IntVal; got != test.port {
				t.Errorf("target port %d, want %d", got, test.port)
			}
			if err != nil {
				return
			}
			server := deployment.Spec.Template.Spec.Containers[0]
			if server.Name != "kserve-container" || server.ReadinessProbe.TCPSocket.Port.IntVal != test.port {
				t.Errorf("container %s, probe %v", server.Name, server.ReadinessProbe)
			}
		})
	}
}

func TestModelStorage(t *testing.T) {
	deployment, err := parse(t, "model: {image: a, storageUri: s3://models/a}").Deployment()
	if err != nil {
		t.Fatal(err)
	}
	const key = "internal.serving.kserve.io/storage-initializer-sourceuri"
	if got := deployment.Spec.Template.Annotations[key]; got != "s3://models/a" {
		t.Errorf("annotation %q, want the storage URI", got)
	}
}

func TestScaledObjectTriggers(t *testing.T) {
	tests := map[string]struct{ metrics, want string }{
		"threshold as a string": {
			`[{type: External, external: {metric: {backend: prometheus, serverAddress: a, query: q}, target: {type: Value, value: "0.75"}}}]`,
			`[{type: prometheus, metadata: {serverAddress: a, query: q, threshold: "0.75"}}]`,
		},
		"threshold as a number": {
			`[{type: External, external: {metric: {backend: prometheus, query: q}, target: {value: 2}}}]`,
			`[{type: prometheus, metadata: {query: q, threshold: "2"}}]`,
		},
		"authentication and namespace": {
			`[{type: External, external: {metric: {query: q, namespace: team}, target: {value: "1"},
			   authenticationRef: {authModes: bearer, authenticationRef: {name: auth}}}}]`,
			`[{type: prometheus, authenticationRef: {name: auth},
			   metadata: {query: q, namespace: team, threshold: "1", authModes: bearer}}]`,
		},
		"pod metric": {
			`[{type: PodMetric, podmetric: {metric: {backend: opentelemetry, serverAddress: s, query: q}, target: {value: "4"}}}]`,
			`[{type: external, metadata: {scalerAddress: s, metricQuery: q, targetValue: "4"}}]`,
		},
		"resource": {
			`[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]`,
			`[{type: cpu, metricType: Utilization, metadata: {value: "60"}}]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scaled, err := parse(t, "autoScaling: {metrics: "+test.metrics+"}").ScaledObject()
			if err != nil {
				t.Fatal(err)
			}
			var want []any
			if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedSlice(scaled.Object, "spec", "triggers")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("triggers (-want +got):\n%s", diff)
			}
		})
	}
	for name, metrics := range map[string]string{"none": "{}", "no source": "{metrics: [{type: External}]}"} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(t, "autoScaling: "+metrics).ScaledObject(); err == nil {
				t.Error("a ScaledObject without a metric")
			}
		})
	}
}

func TestBehavior(t *testing.T) {
	tests := map[string]struct {
		behavior string
		up, down int64
	}{
		"none is KServe's default": {"", 0, 300},
		"windows survive":          {"behavior: {scaleUp: {stabilizationWindowSeconds: 60}, scaleDown: {stabilizationWindowSeconds: 120}}, ", 60, 120},
		"policies do not":          {"behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}}, ", 0, 300},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scaled, err := parse(t, "autoScaling: {"+test.behavior+`metrics: [{type: External, external: {metric: {query: q}, target: {value: "1"}}}]}`).ScaledObject()
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedMap(scaled.Object, "spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")
			want := map[string]any{
				"scaleUp":   map[string]any{"stabilizationWindowSeconds": test.up},
				"scaleDown": map[string]any{"stabilizationWindowSeconds": test.down},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("behavior (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHPA(t *testing.T) {
	tests := map[string]struct {
		predictor string
		want      string
	}{
		"default":          {"{}", "cpu 80 1-1"},
		"scale target":     {"{scaleTarget: 50, scaleMetric: memory, maxReplicas: 3}", "memory 50 1-3"},
		"metrics":          {"{minReplicas: 2, maxReplicas: 3, autoScaling: {metrics: [{type: Resource, resource: {name: cpu, target: {averageUtilization: 70}}}]}}", "cpu 70 2-3"},
		"max below is min": {"{minReplicas: 2}", "cpu 80 2-2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := parse(t, test.predictor).HPA().Spec
			got := fmt.Sprintf("%s %d %d-%d", spec.Metrics[0].Resource.Name,
				*spec.Metrics[0].Resource.Target.AverageUtilization, *spec.MinReplicas, spec.MaxReplicas)
			if got != test.want {
				t.Errorf("HPA %s, want %s", got, test.want)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	now := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	service := parse(t, "{}")
	deployment := func(available corev1.ConditionStatus, progressing string) *appsv1.Deployment {
		return &appsv1.Deployment{Status: appsv1.DeploymentStatus{
			ObservedGeneration: 6, ReadyReplicas: 2,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: available, Reason: "Available?", Message: "availability"},
				{Type: appsv1.DeploymentProgressing, Status: "True", Reason: progressing, Message: "progress"},
			},
		}}
	}
	tests := map[string]struct {
		deployment *appsv1.Deployment
		ready      string
		reason     string
		transition string
	}{
		"nothing yet":   {nil, object.False, "", "InProgress"},
		"unavailable":   {deployment("False", "ReplicaSetUpdated"), object.False, "Available?", "InProgress"},
		"complete":      {deployment("True", "NewReplicaSetAvailable"), object.True, "NewReplicaSetAvailable", "UpToDate"},
		"stuck rollout": {deployment("True", "ReplicaSetUpdated"), object.True, "Available?", "UpToDate"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := service.Observe(isvc.Status{}, test.deployment, now)
			if ready := got.Conditions.Get(isvc.Ready).Status; ready != test.ready {
				t.Errorf("Ready %s, want %s", ready, test.ready)
			}
			if reason := got.Conditions.Get(isvc.PredictorReady).Reason; reason != test.reason {
				t.Errorf("reason %s, want %s", reason, test.reason)
			}
			if got.ModelStatus.TransitionStatus != test.transition {
				t.Errorf("transition %s, want %s", got.ModelStatus.TransitionStatus, test.transition)
			}
			if again := service.Observe(got, test.deployment, now.Add(time.Hour)); cmp.Diff(got, again) != "" {
				t.Errorf("the same Deployment changes the status:\n%s", cmp.Diff(got, again))
			}
			failed := isvc.Failed(got, "ReconcileFailed", "conflict", now)
			if ready := failed.Conditions.Get(isvc.Ready); ready.Status != object.False || ready.Message != "conflict" {
				t.Errorf("Ready after a failure %v", ready)
			}
		})
	}
}
