package explain

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// TestKEDAVersionWithoutHPA: while a ScaledObject has no HPA that bears KEDA's
// version, the operator's image tells it.
func TestKEDAVersionWithoutHPA(t *testing.T) {
	w := newWorld(t, "version", apiserver.Admin)
	w.addAll(t, []service{{name: "held", replicas: 1, max: 3, target: "2", withoutHPA: true}})
	look := func() record.KEDALoop {
		t.Helper()
		stdout, _, err := runCluster(t, w.url, "-n", w.namespace, "so/held", "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var document record.ScalingExplanation
		if err := json.Unmarshal([]byte(stdout), &document); err != nil {
			t.Fatal(err)
		}
		return *document.Chains[0].KEDA
	}
	if got := look(); !got.VersionAssumed {
		t.Errorf("got %s", got.Version)
	}
	labels := map[string]string{"app.kubernetes.io/name": "keda-operator"}
	operator := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "keda-operator", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/keda:2.17.3@sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}}},
		},
	}
	if _, err := w.typed.AppsV1().Deployments("default").Create(t.Context(), operator, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.typed.AppsV1().Deployments("default").Delete(t.Context(), "keda-operator", metav1.DeleteOptions{})
	})
	if got := look(); got.VersionAssumed || got.Version != "2.17.3" {
		t.Errorf("got %+v", got)
	}
}
