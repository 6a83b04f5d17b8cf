package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// addPlain writes a Deployment with an HPA of its own: cpu, one container's
// memory, a metric of pods and one of the namespace, without KEDA. Two pods run
// for long, one has just started.
func (w *world) addPlain(t *testing.T, metrics ...autoscalingv2.MetricSpec) {
	t.Helper()
	ctx, labels, replicas := t.Context(), map[string]string{"app": "plain"}, int32(3)
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/none:1", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": *quantity("1"), "memory": *quantity("1Gi")},
	}}}}
	deployment, err := w.typed.AppsV1().Deployments(w.namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deployment.Status = appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: 2}
	if _, err := w.typed.AppsV1().Deployments(w.namespace).UpdateStatus(ctx, deployment, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := w.typed.CoreV1().Pods(w.namespace)
	for i, age := range []time.Duration{time.Hour, time.Hour, time.Minute} {
		made, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("plain-%d", i), Labels: labels}, Spec: pod}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		since, ready := metav1.NewTime(time.Now().Add(-age)), corev1.ConditionTrue
		if i == 2 {
			ready = corev1.ConditionFalse
		}
		made.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &since, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: since}}}
		if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	hpas := w.typed.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	object, err := hpas.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas: 9, Metrics: metrics,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "plain"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Status = autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 3, DesiredReplicas: 3, Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "ReadyForNewScale", LastTransitionTime: metav1.Now()},
		{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound", LastTransitionTime: metav1.Now()},
		{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionFalse, Reason: "DesiredWithinRange", LastTransitionTime: metav1.Now()},
	}}
	if _, err := hpas.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func cpuOfRequest(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}
}

// usage is an answer of the metrics server, with the same numbers for each pod.
func usage(pods int, cpu, memory string) string {
	var items []string
	for i := range pods {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"plain-%d"},"timestamp":%q,"window":"15s","containers":[{"name":"main","usage":{"cpu":%q,"memory":%q}}]}`, i, time.Now().UTC().Format(time.RFC3339), cpu, memory))
	}
	return `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[` + strings.Join(items, ",") + `]}`
}

// TestFreshPods: with the pods' samples now is the controller's whole
// calculation: the pod that is starting does not count for cpu.
func TestFreshPods(t *testing.T) {
	w := newWorld(t, "plain", apiserver.Admin)
	w.apis = map[string]http.HandlerFunc{
		"/apis/metrics.k8s.io/": func(out http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/namespaces/plain/pods" || r.URL.Query().Get("labelSelector") != "app=plain" {
				t.Errorf("request %s", r.URL)
			}
			fmt.Fprint(out, usage(3, "900m", "512Mi"))
		},
		"/apis/custom.metrics.k8s.io/v1beta2/": func(out http.ResponseWriter, _ *http.Request) { http.NotFound(out, nil) },
		"/apis/custom.metrics.k8s.io/v1beta1/namespaces/plain/": func(out http.ResponseWriter, r *http.Request) {
			switch strings.TrimPrefix(r.URL.Path, "/apis/custom.metrics.k8s.io/v1beta1/namespaces/plain/") {
			case "pods/*/waiting":
				fmt.Fprintf(out, `{"items":[{"describedObject":{"name":"plain-0"},"timestamp":%[1]q,"value":"3"},{"describedObject":{"name":"plain-1"},"timestamp":%[1]q,"value":"5"},{"describedObject":{"name":"plain-2"},"timestamp":%[1]q,"value":"4"}]}`, time.Now().UTC().Format(time.RFC3339))
			case "services/front/rate":
				if r.URL.Query().Get("metricLabelSelector") != "path=v1" {
					t.Errorf("request %s", r.URL)
				}
				fmt.Fprint(out, `{"items":[{"describedObject":{"name":"front"},"value":"70"}]}`)
			default:
				http.NotFound(out, r)
			}
		},
	}
	w.addPlain(t, cpuOfRequest(60),
		autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
			Name: "memory", Container: "main", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity("1Gi")},
		}},
		autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "waiting"}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity("4")},
		}},
		autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "front"},
			Metric:          autoscalingv2.MetricIdentifier{Name: "rate", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"path": "v1"}}},
			Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: quantity("20")},
		}},
	)
	w.seen()
	now := w.explain(t, "hpa/plain", "--fresh").Chains[0].Now
	requests := w.seen()
	if now == nil || len(now.Values) != 4 || now.Decision == nil {
		t.Fatalf("got %+v", now)
	}
	for i, want := range []struct {
		value float64
		pods  int32
		via   string
		asks  int32
	}{
		// Two pods count at 90 %: ratio 1.5. The starting one is taken for 0, so that
		// 60 % over three pods holds the size.
		{2.7, 3, groupResource, 3},
		// Half a gibibyte each: two pods do.
		{3 * 512 << 20, 3, groupResource, 2},
		{12, 3, groupCustom, 3},
		{70, 0, groupCustom, 4},
	} {
		value, trigger := now.Values[i], now.Decision.Triggers[i]
		if value.Error != "" || value.Value == nil || *value.Value != want.value || value.Via != want.via || (want.pods > 0 && (value.Pods == nil || *value.Pods != want.pods)) {
			t.Errorf("%d: got %+v %v", i, value, value.Value)
		}
		if trigger.Proposes == nil || trigger.Proposes.Low != want.asks || trigger.Proposes.High == nil || *trigger.Proposes.High != want.asks {
			t.Errorf("%d: asks for %+v: %+v", i, trigger.Proposes, trigger)
		}
	}
	if d := now.Decision; d.Decision.Raw == nil || d.Decision.Raw.Low != 4 || *d.Decision.Raw.High != 4 || slices.ContainsFunc(d.Decision.HiddenInputs, func(s string) bool { return strings.HasPrefix(s, "samples") }) || d.Settles == nil || !d.Settles.Estimate {
		t.Errorf("got %+v, settles %+v", d.Decision, d.Settles)
	}
	stdout, _, err := w.run(t, "hpa/plain", "--fresh")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"NOW read at ", "from metrics.k8s.io and custom.metrics.k8s.io", "cpu is fresh: 2.7 in all of 3 pods", "90% of 60% of request: asks for 3", "about 5", "About: what the pods use is taken to stay the same in all"} {
		if !strings.Contains(stdout, line) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
	if apis := apiRequests(requests); len(apis) > 12 {
		t.Errorf("%d requests: %s", len(apis), strings.Join(apis, "\n"))
	}
}

// apiRequests leaves out discovery, which is cached.
func apiRequests(requests []string) []string {
	var kept []string
	for _, request := range requests {
		path, _, _ := strings.Cut(strings.TrimPrefix(request, "GET "), "?")
		if parts := strings.Split(strings.Trim(path, "/"), "/"); parts[0] == "apis" && len(parts) <= 3 || path == "/api" || path == "/api/v1" {
			continue
		}
		kept = append(kept, request)
	}
	return kept
}

// TestFreshPodsRefused: a missing right or server costs that metric only.
func TestFreshPodsRefused(t *testing.T) {
	w := newWorld(t, "plain-refused", apiserver.Admin)
	forbid := false
	w.apis = map[string]http.HandlerFunc{"/apis/metrics.k8s.io/": func(out http.ResponseWriter, r *http.Request) {
		if !forbid {
			http.NotFound(out, r)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprint(out, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	}}
	w.addPlain(t, cpuOfRequest(60))
	for _, test := range []struct {
		forbid bool
		want   string
	}{
		{false, "cannot list pods.metrics.k8s.io in plain-refused: there is no such metric, or no server for its API"},
		{true, "cannot list pods.metrics.k8s.io in plain-refused: not permitted"},
	} {
		forbid = test.forbid
		now := w.explain(t, "hpa/plain", "--fresh").Chains[0].Now
		if len(now.Values) != 1 || now.Values[0].Error != test.want || now.Decision != nil {
			t.Errorf("got %+v", now)
		}
	}
}
