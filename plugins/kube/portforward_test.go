package kube

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

func servicePod(ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p-0", Namespace: "m", Labels: map[string]string{"app": "p"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "p", Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 9091}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// TestBackend: a port of a service becomes that of one of its ready pods.
func TestBackend(t *testing.T) {
	for name, test := range map[string]struct {
		target    intstr.IntOrString
		clusterIP string
		ready     corev1.ConditionStatus
		pod, port string
		want      podPort
		fails     string
	}{
		"by name":       {intstr.FromString("web"), "", corev1.ConditionTrue, "", "80", podPort{"p-0", 9091}, ""},
		"by number":     {intstr.FromInt32(8080), "", corev1.ConditionTrue, "", "80", podPort{"p-0", 8080}, ""},
		"the same":      {intstr.IntOrString{}, "", corev1.ConditionTrue, "", "80", podPort{"p-0", 80}, ""},
		"headless":      {intstr.FromString("web"), corev1.ClusterIPNone, corev1.ConditionTrue, "", "9091", podPort{"p-0", 9091}, ""},
		"one pod":       {intstr.FromString("web"), corev1.ClusterIPNone, corev1.ConditionFalse, "p-7", "9091", podPort{"p-7", 9091}, ""},
		"no such name":  {intstr.FromString("grpc"), "", corev1.ConditionTrue, "", "80", podPort{}, `pod p-0 has no port "grpc"`},
		"no such port":  {intstr.FromString("web"), "", corev1.ConditionTrue, "", "81", podPort{}, "service p in m has no port 81"},
		"none is ready": {intstr.FromString("web"), "", corev1.ConditionFalse, "", "80", podPort{}, "service p in m has no ready pod"},
	} {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "m"},
			Spec:       corev1.ServiceSpec{ClusterIP: test.clusterIP, Selector: map[string]string{"app": "p"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: test.target}}},
		}
		forwards := Forwards{client: fake.NewClientset(service, servicePod(test.ready)), open: map[string]*forward{}}
		got, err := forwards.backend(t.Context(), "m", "p", test.pod, test.port)
		if test.fails == "" && (err != nil || got != test.want) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if test.fails != "" && (err == nil || err.Error() != test.fails) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestForwardsEnd: a server that refuses the upgrade costs an error, once, and
// Close leaves nothing running.
func TestForwardsEnd(t *testing.T) {
	upgrades := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods/p-0/portforward") {
			upgrades++
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"p-0\" is forbidden"}`))
	}))
	config := &rest.Config{Host: server.URL}
	before := runtime.NumGoroutine()
	factory := &Factory{config: func() (*rest.Config, error) { return config, nil }}
	forwards, err := factory.Forwards()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var connection net.Conn
		connection, err = forwards.Dial(t.Context(), "m", "p", "p-0", "9090")
		if connection != nil || err == nil || !strings.Contains(err.Error(), "not permitted to create pods/portforward in m") {
			t.Errorf("got %v", err)
		}
	}
	if upgrades != 2 {
		t.Errorf("%d upgrades: a websocket and SPDY, once each, are due", upgrades)
	}
	forwards.Close()
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for runtime.NumGoroutine() > before && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if left := runtime.NumGoroutine(); left > before {
		buffer := make([]byte, 1<<16)
		t.Errorf("%d goroutines are left of %d:\n%s", left, before, buffer[:runtime.Stack(buffer, true)])
	}
}
