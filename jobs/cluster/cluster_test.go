package cluster

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var shared apiserver.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func client(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(shared.Start(t).Config(user))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestSave(t *testing.T) {
	admin := client(t, apiserver.Admin)
	pod := Pod{Namespace: "default", Name: "p", Job: "inference-bench-a", JobUID: "00000000-0000-0000-0000-000000000001"}
	// Another run's document of the same name is replaced.
	for _, version := range []int{1, 2} {
		for name, keep := range map[string]bool{"goes": false, "stays": true} {
			if err := Save(t.Context(), admin, pod, name, "report.json", map[string]int{"version": version}, keep); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, owners := range map[string][]metav1.OwnerReference{
		"goes":  {{APIVersion: "batch/v1", Kind: "Job", Name: "inference-bench-a", UID: "00000000-0000-0000-0000-000000000001"}},
		"stays": nil,
	} {
		saved, err := admin.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := &corev1.ConfigMap{Data: map[string]string{"report.json": "{\n  \"version\": 2\n}\n"}}
		want.OwnerReferences, want.Labels = owners, map[string]string{"app.kubernetes.io/name": "kubectl-inference", "app.kubernetes.io/managed-by": "kubectl-inference"}
		got := &corev1.ConfigMap{Data: saved.Data}
		got.OwnerReferences, got.Labels = saved.OwnerReferences, saved.Labels
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSaveFails(t *testing.T) {
	pod := Pod{Namespace: "default", Job: "j", JobUID: "u"}
	err := Save(t.Context(), client(t, apiserver.Guest), pod, "a", "k", 1, true)
	if failure.KindOf(err) != failure.Denied || !strings.Contains(failure.HintOf(err), "`kubectl inference manifests rbac | kubectl apply -n default -f -`") {
		t.Errorf("forbidden: %v, hint %q", err, failure.HintOf(err))
	}
	admin := client(t, apiserver.Admin)
	pod.Namespace = "gone"
	if err := Save(t.Context(), admin, pod, "a", "k", 1, true); failure.KindOf(err) != failure.Failed || !strings.HasPrefix(err.Error(), "save configmap gone/a: ") {
		t.Errorf("no namespace: %v", err)
	}
	if err := Save(t.Context(), admin, pod, "a", "k", math.NaN(), true); err == nil || !strings.HasPrefix(err.Error(), "write k: ") {
		t.Errorf("no JSON: %v", err)
	}
}

func TestHere(t *testing.T) {
	whole := map[string]string{"POD_NAMESPACE": "n", "POD_NAME": "p", "JOB_NAME": "j", "JOB_UID": "u"}
	if pod, ok := Here(func(name string) string { return whole[name] }); !ok || pod != (Pod{"n", "p", "j", "u"}) {
		t.Errorf("%+v %v", pod, ok)
	}
	for _, missing := range []string{"POD_NAMESPACE", "JOB_NAME", "JOB_UID"} {
		if _, ok := Here(func(name string) string { return map[bool]string{true: whole[name]}[name != missing] }); ok {
			t.Errorf("without %s it is a Job", missing)
		}
	}
}

func TestConfigOutsideACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Config(); failure.KindOf(err) != failure.Usage {
		t.Errorf("error %v", err)
	}
}

// TestSaveInsists: an API server that is away when a result is to be saved costs
// time, not the result.
func TestSaveInsists(t *testing.T) {
	config := shared.Start(t).Config(apiserver.Admin)
	failing := 3
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if failing--; failing >= 0 {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(request)
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pod := Pod{Namespace: "default", Job: "j", JobUID: "00000000-0000-0000-0000-000000000001"}
	if err := Save(t.Context(), client, pod, "late", "k", 1, true); err != nil {
		t.Error(err)
	}
	failing = 1 << 30
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := Save(ctx, client, pod, "never", "k", 1, true); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a server that stays away: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
