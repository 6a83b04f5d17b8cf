package explain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

const token = "not-to-be-printed"

func vector(value string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, value)
}

func (w *world) explain(t *testing.T, args ...string) record.ScalingExplanation {
	t.Helper()
	stdout, stderr, err := w.run(t, append(args, "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stdout+stderr, token) {
		t.Errorf("a credential is printed:\n%s%s", stdout, stderr)
	}
	var document record.ScalingExplanation
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// TestFresh: a service of the cluster is asked through the API server, and the
// next sync is decided with its answer.
func TestFresh(t *testing.T) {
	w := newWorld(t, "fresh", apiserver.Admin)
	w.prometheus = func(out http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("query")
		if r.Method != http.MethodGet || (query != "sum(vllm:num_requests_waiting)" && !strings.HasPrefix(query, `{__name__=~"kube_horizontalpodautoscaler_`)) {
			t.Errorf("request %s %s", r.Method, r.URL)
		}
		fmt.Fprint(out, vector("9"))
	}
	w.addAll(t, []service{steady("fine", 0)})
	now := w.explain(t, "so/fine", "--fresh").Chains[0].Now
	if now == nil || len(now.Values) != 1 || now.Values[0].Value == nil || *now.Values[0].Value != 9 || now.Values[0].Via != "proxy" {
		t.Fatalf("got %+v", now)
	}
	if d := now.Decision; d == nil || d.Triggers[0].Proposes.Low != 5 || d.Decision.Desired.Low != 4 {
		t.Errorf("got %+v", now.Decision)
	}
	stdout, _, err := w.run(t, "so/fine", "--fresh")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"NOW read at ", "s0 queue depth is fresh: 9", "LAST SYNC", "4.00 of 2 per replica: asks for 2"} {
		if !strings.Contains(stdout, line) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
	for _, request := range w.seen() {
		if strings.Contains(request, "external.metrics.k8s.io") {
			t.Errorf("not passive: %s", request)
		}
	}
}

// TestFreshCredentials: the token comes from the Secret of the trigger's
// TriggerAuthentication; it and what is missing is never printed.
func TestFreshCredentials(t *testing.T) {
	w := newWorld(t, "secrets", apiserver.Admin)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(out, vector("1"))
	}))
	defer server.Close()
	s := steady("fine", 0)
	s.address, s.auth = server.URL, "prometheus"
	w.addAll(t, []service{s})
	value := func() record.FreshValue { return w.explain(t, "so/fine", "--fresh").Chains[0].Now.Values[0] }
	if got := value(); got.Value != nil || got.Error != "its TriggerAuthentication prometheus cannot be read: not found" {
		t.Errorf("got %+v", got)
	}
	w.server.Kubectl(t, `apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: prometheus}
spec: {secretTargetRef: [{parameter: bearerToken, name: credentials, key: token}]}
`, "apply", "-n", w.namespace, "-f", "-")
	if got := value(); got.Value != nil || got.Error != "cannot get secrets credentials in secrets: not found" {
		t.Errorf("got %+v", got)
	}
	secrets := w.typed.CoreV1().Secrets(w.namespace)
	secret, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"token": token}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := value(); got.Value == nil || *got.Value != 1 || got.Via != "direct" {
		t.Errorf("got %+v", got)
	}
	secret.StringData = map[string]string{"token": token + "-wrong"}
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := value(); got.Value != nil || !strings.HasSuffix(got.Error, "answers with status 401") {
		t.Errorf("got %+v", got)
	}
}

func TestFreshNeedsATarget(t *testing.T) {
	for _, args := range [][]string{{"--fresh"}, {"--fresh", "-f", "testdata/waiting.yaml"}} {
		if _, _, err := run(t, "", args...); failure.KindOf(err) != failure.Usage {
			t.Errorf("%v: got %v", args, err)
		}
	}
}
