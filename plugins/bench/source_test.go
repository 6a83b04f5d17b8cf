package bench

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

const guarded = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  triggers:
  - type: prometheus
    metadata: {serverAddress: "https://prometheus.monitoring:9090", query: up, threshold: "1", authModes: "MODES", namespace: llm, customHeaders: "X-Scope-OrgID=team"}
    authenticationRef: {name: auth}
---
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata: {name: auth}
spec:
  secretTargetRef:
  - {parameter: bearerToken, name: prom, key: token}
  - {parameter: username, name: prom, key: user}
  - {parameter: password, name: prom, key: password}
  - {parameter: customAuthHeader, name: prom, key: header}
  - {parameter: customAuthValue, name: prom, key: value}
  - {parameter: cert, name: prom, key: tls.crt}
  - {parameter: key, name: prom, key: tls.key}
  configMapTargetRef:
  - {parameter: ca, name: authority, key: ca.crt}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 8000}]}
`

// TestSource: a plan names what KEDA would show, and the Job refers to the same
// Secrets; no value is in either.
func TestSource(t *testing.T) {
	server := cluster.Start(t)
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"ScaledObject", "TriggerAuthentication"} {
		crd := strings.NewReplacer("scaledobject", strings.ToLower(name), "ScaledObject", name).Replace(kedaCRD)
		server.Kubectl(t, crd, "apply", "-f", "-")
		server.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+strings.ToLower(name)+"s.keda.sh")
	}
	server.Kubectl(t, "", "create", "namespace", "guarded")
	server.Kubectl(t, "", "create", "secret", "generic", "prom", "-n", "guarded", "--from-literal=token=very-secret", "--from-literal=user=u", "--from-literal=password=p", "--from-literal=header=h",
		"--from-literal=value=v", "--from-literal=tls.crt=c", "--from-literal=tls.key=k")
	server.Kubectl(t, "", "create", "configmap", "authority", "-n", "guarded", "--from-literal=ca.crt=x")
	server.Kubectl(t, "", "create", "serviceaccount", "inference-bench", "-n", "guarded")
	for modes, want := range map[string]record.PrometheusAuth{
		"bearer": {Bearer: "env:INFERENCE_PROMETHEUS_BEARERTOKEN"},
		"basic":  {Username: "env:INFERENCE_PROMETHEUS_USERNAME", Password: "env:INFERENCE_PROMETHEUS_PASSWORD"},
		"tls":    {Cert: "env:INFERENCE_PROMETHEUS_CERT", Key: "env:INFERENCE_PROMETHEUS_KEY"},
		"custom": {Headers: map[string]string{"env:INFERENCE_PROMETHEUS_CUSTOMAUTHHEADER": "env:INFERENCE_PROMETHEUS_CUSTOMAUTHVALUE"}},
	} {
		t.Run(modes, func(t *testing.T) {
			server.Kubectl(t, strings.Replace(guarded, "MODES", modes, 1), "apply", "-n", "guarded", "-f", "-")
			got := run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Admin), "-n", "guarded", "plan", "svc/web", "--allow-scaling", "-o", "json")
			var plan record.BenchPlan
			if got.err == nil {
				got.err = record.Decode([]byte(got.stdout), record.KindBenchPlan, &plan)
			}
			if got.err != nil || plan.Prometheus == nil || plan.Prometheus.Auth == nil {
				t.Fatalf("%+v", got)
			}
			want.CA, want.Parameters = "env:INFERENCE_PROMETHEUS_CA", map[string]string{"namespace": "llm"}
			// KEDA sends the certificate in every mode, once there is a ca.
			want.Cert, want.Key = "env:INFERENCE_PROMETHEUS_CERT", "env:INFERENCE_PROMETHEUS_KEY"
			if want.Headers == nil {
				want.Headers = map[string]string{}
			}
			want.Headers["X-Scope-Orgid"] = "team"
			if a, b := text(t, want), text(t, *plan.Prometheus.Auth); a != b {
				t.Errorf("got  %s\nwant %s", b, a)
			}
		})
	}
	got := run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Admin), "-n", "guarded", "svc/web", "--allow-scaling", "--image", "example.test/i", "--name", "auth", "--wait=false")
	if got.err != nil {
		t.Fatal(failure.Text(got.err))
	}
	job, err := kubernetes.NewForConfigOrDie(server.Config(apiserver.Admin)).BatchV1().Jobs("guarded").Get(t.Context(), "inference-bench-auth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := text(t, job.Spec)
	if strings.Contains(whole, "very-secret") || !strings.Contains(whole, `{"name":"INFERENCE_PROMETHEUS_BEARERTOKEN","valueFrom":{"secretKeyRef":{"name":"prom","key":"token"}}}`) {
		t.Error(whole)
	}

	server.Kubectl(t, strings.NewReplacer("MODES", "bearer", "{name: auth}\n---", "{name: auth, kind: ClusterTriggerAuthentication}\n---").Replace(guarded), "apply", "-n", "guarded", "-f", "-")
	got = run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Admin), "-n", "guarded", "plan", "svc/web", "--allow-scaling")
	if failure.KindOf(got.err) != failure.Usage || !strings.Contains(failure.Text(got.err), "lie in KEDA's namespace") {
		t.Errorf("%s", failure.Text(got.err))
	}
	if got := run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Admin), "-n", "guarded", "plan", "svc/web", "--allow-scaling", "--prometheus", "none"); got.err != nil || !strings.Contains(got.stdout, "no Prometheus is known") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}

func text(t *testing.T, document any) string {
	t.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
