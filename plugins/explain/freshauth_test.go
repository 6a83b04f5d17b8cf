package explain

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// guarded is a Prometheus that wants the token.
func guarded(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(out, vector("1"))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (w *world) secret(t *testing.T, namespace, name string) {
	t.Helper()
	if _, err := w.typed.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		if _, err := w.typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": token, "TOKEN": token}}
	if _, err := w.typed.CoreV1().Secrets(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func authenticatedBy(kind, name string) func(map[string]any) {
	return func(spec map[string]any) {
		trigger := spec["triggers"].([]any)[0].(map[string]any) //nolint:forcetypeassert // written by service.trigger
		trigger["authenticationRef"] = map[string]any{"kind": kind, "name": name}
	}
}

func (w *world) fresh(t *testing.T, name string) record.FreshValue {
	t.Helper()
	return w.explain(t, "so/"+name, "--fresh").Chains[0].Now.Values[0]
}

// TestFreshCluster: a ClusterTriggerAuthentication's Secrets lie in KEDA's
// namespace, which the external metrics API names; what was tried is said.
func TestFreshCluster(t *testing.T) {
	w := newWorld(t, "cluster-auth", apiserver.Admin)
	s := steady("fine", 0)
	s.address, s.auth, s.change = guarded(t), "x", authenticatedBy("ClusterTriggerAuthentication", "central")
	w.addAll(t, []service{s})
	w.server.Kubectl(t, `apiVersion: keda.sh/v1alpha1
kind: ClusterTriggerAuthentication
metadata: {name: central}
spec: {secretTargetRef: [{parameter: bearerToken, name: central, key: token}]}
`, "apply", "-f", "-")
	assumed := "cannot get secrets central in keda: not found (KEDA's namespace is assumed to be keda: apiservice v1beta1.external.metrics.k8s.io not found)"
	if got := w.fresh(t, "fine"); got.Error != assumed {
		t.Errorf("got %q", got.Error)
	}
	home := "openshift-keda"
	w.apis = map[string]http.HandlerFunc{"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io": func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1beta1.external.metrics.k8s.io"},"spec":{"service":{"name":"keda-metrics-apiserver","namespace":%q}}}`, home)
	}}
	w.secret(t, home, "central")
	if got := w.fresh(t, "fine"); got.Error != "" || got.Value == nil {
		t.Errorf("got %+v", got)
	}
	home = "elsewhere"
	if got := w.fresh(t, "fine"); !strings.Contains(got.Error, "secrets central in elsewhere: not found (KEDA's namespace by apiservice") || !strings.Contains(got.Error, "KEDA_CLUSTER_OBJECT_NAMESPACE") {
		t.Errorf("got %q", got.Error)
	}
}

// TestFreshEnv: parameters from the environment of the scale target, and from
// where this command does not reach.
func TestFreshEnv(t *testing.T) {
	w := newWorld(t, "env-auth", apiserver.Admin)
	address := guarded(t)
	for _, name := range []string{"env", "vault"} {
		s := steady(name, 0)
		s.address, s.auth, s.change = address, "x", authenticatedBy("TriggerAuthentication", name)
		w.addAll(t, []service{s})
	}
	w.server.Kubectl(t, `apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: env}
spec: {env: [{parameter: bearerToken, name: TOKEN}]}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: vault}
spec: {hashiCorpVault: {address: "http://vault", secrets: []}}
`, "apply", "-n", w.namespace, "-f", "-")
	if got := w.fresh(t, "vault"); got.Error != "its TriggerAuthentication vault takes credentials from hashiCorpVault, which is not read here" {
		t.Errorf("got %q", got.Error)
	}
	if got := w.fresh(t, "env"); got.Error != "container main of the workload has no variable TOKEN" {
		t.Errorf("got %q", got.Error)
	}
	w.secret(t, w.namespace, "credentials")
	for name, container := range map[string]string{
		"a variable":     `{"name":"main","env":[{"name":"TOKEN","valueFrom":{"secretKeyRef":{"name":"credentials","key":"token"}}}]}`,
		"a whole Secret": `{"name":"main","env":null,"envFrom":[{"secretRef":{"name":"credentials"}}]}`,
	} {
		w.server.Kubectl(t, "", "patch", "deployment", "env", "-n", w.namespace, "-p", `{"spec":{"template":{"spec":{"containers":[`+container+`]}}}}`)
		if got := w.fresh(t, "env"); got.Error != "" || got.Value == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestFreshSecretsStay: a recording of a look with credentials holds none, and
// a right to read them that is missing costs that trigger only, in one line.
func TestFreshSecretsStay(t *testing.T) {
	w := newWorld(t, "secrets-stay", apiserver.Admin)
	s := steady("fine", 0)
	s.address, s.auth = guarded(t), "prometheus"
	w.addAll(t, []service{s})
	w.secret(t, w.namespace, "credentials")
	w.server.Kubectl(t, `apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: prometheus}
spec: {secretTargetRef: [{parameter: bearerToken, name: credentials, key: token}]}
`, "apply", "-n", w.namespace, "-f", "-")
	dir := filepath.Join(t.TempDir(), "ticket")
	w.seen()
	document := w.explain(t, "so/fine", "--fresh", "--record", dir)
	if got := document.Chains[0].Now.Values[0]; got.Value == nil {
		t.Fatalf("got %+v", got)
	}
	if requests := apiRequests(w.seen()); len(requests) > 12 {
		t.Errorf("%d requests: %s", len(requests), strings.Join(requests, "\n"))
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), token) {
			t.Errorf("%s holds the token", file.Name())
		}
	}
	for _, command := range [][]string{
		{"create", "role", "reader", "-n", w.namespace, "--verb=get,list,watch", "--resource=scaledobjects.keda.sh,triggerauthentications.keda.sh,deployments.apps,horizontalpodautoscalers.autoscaling,events,pods"},
		{"create", "rolebinding", "reader", "-n", w.namespace, "--role=reader", "--user=" + apiserver.Guest},
	} {
		w.server.Kubectl(t, "", command...)
	}
	w.setUser(apiserver.Guest)
	if got := w.fresh(t, "fine"); got.Value != nil || got.Error != "cannot get secrets credentials in secrets-stay: not permitted" {
		t.Errorf("got %+v", got)
	}
}
