package explain

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// One server for all tests, on which KEDA's kinds are installed once.
var (
	shared    apiserver.Shared
	installed sync.Once
)

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world is a namespace of a real API server with KEDA's kinds and nobody behind
// them: the tests write what KEDA and the HPA controller would.
type world struct {
	t         testing.TB
	server    *apiserver.Server
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string
	url       string

	// prometheus answers for the service prometheus in monitoring: no pod runs
	// behind the API server.
	prometheus http.HandlerFunc
	// apis answer for API groups that no server stands behind, by prefix of the
	// path.
	apis map[string]http.HandlerFunc

	transport http.RoundTripper

	mutex    sync.Mutex
	requests []string
}

// newWorld makes a namespace, and a way to the server as user that counts.
func newWorld(t testing.TB, namespace, user string) *world {
	t.Helper()
	server := shared.Start(t)
	installed.Do(func() { installKEDA(t, server) })
	config := server.Config(apiserver.Admin)
	w := &world{t: t, server: server, namespace: namespace}
	var err error
	if w.typed, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if _, err := w.typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.setUser(user)
	target, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) { return w.transport.RoundTrip(r) }),
	}
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mutex.Lock()
		w.requests = append(w.requests, r.Method+" "+r.URL.RequestURI())
		w.mutex.Unlock()
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/") && w.prometheus != nil {
			w.prometheus(out, r)
			return
		}
		for prefix, answer := range w.apis {
			if strings.HasPrefix(r.URL.Path, prefix) {
				answer(out, r)
				return
			}
		}
		proxy.ServeHTTP(out, r)
	}))
	t.Cleanup(front.Close)
	w.url = front.URL
	return w
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// setUser chooses who asks from now on.
func (w *world) setUser(user string) {
	w.t.Helper()
	transport, err := rest.TransportFor(w.server.Config(user))
	if err != nil {
		w.t.Fatal(err)
	}
	w.transport = transport
}

func installKEDA(t testing.TB, server *apiserver.Server) {
	t.Helper()
	crd := func(plural, singular, kind string) string {
		return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {plural: %[1]s, singular: %[2]s, kind: %[3]s}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`, plural, singular, kind)
	}
	cluster := strings.Replace(crd("clustertriggerauthentications", "clustertriggerauthentication", "ClusterTriggerAuthentication"), "Namespaced", "Cluster", 1)
	server.Kubectl(t, cluster+crd("scaledobjects", "scaledobject", "ScaledObject")+crd("triggerauthentications", "triggerauthentication", "TriggerAuthentication"), "apply", "-f", "-")
	server.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/scaledobjects.keda.sh", "crd/triggerauthentications.keda.sh", "crd/clustertriggerauthentications.keda.sh")
}

// seen returns the requests since the last call.
func (w *world) seen() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	requests := w.requests
	w.requests = nil
	return requests
}

// service describes one scaled workload and what the controller last wrote.
type service struct {
	name            string
	replicas, max   int32
	average, target string
	desired         int32
	able, limited   string
	limitedTrue     bool
	wholeTarget     bool
	withoutHPA      bool
	pods            int
	// address is its Prometheus, auth its TriggerAuthentication.
	address, auth string
	// change edits the ScaledObject before it is written.
	change func(spec map[string]any)
	metric string
}

// add writes a service's objects. It may be called from several goroutines.
func (w *world) add(s service) error {
	ctx, labels := w.t.Context(), map[string]string{"app": s.name}
	so := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"name": s.name, "namespace": w.namespace},
		"spec": map[string]any{
			"scaleTargetRef": map[string]any{"name": s.name}, "minReplicaCount": int64(1), "maxReplicaCount": int64(s.max),
			"fallback": map[string]any{"failureThreshold": int64(3), "replicas": int64(1)},
			"triggers": []any{s.trigger()},
		},
	}}
	if s.change != nil {
		s.change(so.Object["spec"].(map[string]any)) //nolint:forcetypeassert // written above
	}
	sos := w.dynamic.Resource(schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}).Namespace(w.namespace)
	created, err := sos.Create(ctx, so, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &s.replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/none:1"}}}},
		},
	}
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	if deployment, err = deployments.Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	deployment.Status = appsv1.DeploymentStatus{Replicas: s.replicas, ReadyReplicas: s.replicas}
	if _, err := deployments.UpdateStatus(ctx, deployment, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for i := range s.pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.name, i), Labels: labels}, Spec: deployment.Spec.Template.Spec}
		if _, err := w.typed.CoreV1().Pods(w.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if s.withoutHPA {
		created.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed", "message": "cpu trigger without a target"}}}
		_, err := sos.UpdateStatus(ctx, created, metav1.UpdateOptions{})
		return err
	}
	return w.addHPA(s, created)
}

func (w *world) addHPA(s service, owner *unstructured.Unstructured) error {
	ctx, isTrue := w.t.Context(), true
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity(s.target)}
	current := autoscalingv2.MetricValueStatus{AverageValue: quantity(s.average)}
	if s.wholeTarget {
		target = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: quantity(s.target)}
		current = autoscalingv2.MetricValueStatus{Value: quantity(s.average)}
	}
	metric := autoscalingv2.MetricIdentifier{Name: cmp.Or(s.metric, "s0-prometheus"), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"scaledobject.keda.sh/name": s.name}}}
	hpas := w.typed.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	hpa, err := hpas.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "keda-hpa-" + s.name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Name: s.name, UID: owner.GetUID(), Controller: &isTrue,
		}}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas: s.max, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: s.name},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: metric, Target: target}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	limited := corev1.ConditionFalse
	if s.limitedTrue {
		limited = corev1.ConditionTrue
	}
	hpa.Status = autoscalingv2.HorizontalPodAutoscalerStatus{
		CurrentReplicas: s.replicas, DesiredReplicas: s.desired,
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
			{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: s.able, LastTransitionTime: now},
			{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound", LastTransitionTime: now,
				Message: "the HPA was able to successfully calculate a replica count from external metric s0-prometheus(nil)"},
			{Type: autoscalingv2.ScalingLimited, Status: limited, Reason: s.limited, LastTransitionTime: now},
		},
		CurrentMetrics: []autoscalingv2.MetricStatus{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricStatus{Metric: metric, Current: current}}},
	}
	_, err = hpas.UpdateStatus(ctx, hpa, metav1.UpdateOptions{})
	return err
}

// trigger is the service's one trigger.
func (s service) trigger() map[string]any {
	metadata := map[string]any{
		"serverAddress": cmp.Or(s.address, "http://prometheus.monitoring:9090"), "threshold": s.target, "query": "sum(vllm:num_requests_waiting)", "ignoreNullValues": "false",
	}
	trigger := map[string]any{"type": "prometheus", "metadata": metadata}
	if s.auth != "" {
		metadata["authModes"] = "bearer"
		trigger["authenticationRef"] = map[string]any{"name": s.auth}
	}
	return trigger
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// steady is a service at rest: the same size is asked for.
func steady(name string, pods int) service {
	return service{name: name, replicas: 2, max: 4, average: "2", target: "2", desired: 2, able: "ReadyForNewScale", limited: "DesiredWithinRange", pods: pods}
}
