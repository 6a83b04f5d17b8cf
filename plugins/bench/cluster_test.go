package bench

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var cluster apiserver.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// kedaCRD is as much of KEDA as a list of ScaledObjects needs.
const kedaCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {kind: ScaledObject, listKind: ScaledObjectList, plural: scaledobjects, singular: scaledobject}
  versions:
    - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const scalers = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: other, namespace: default}
spec: {scaleTargetRef: {name: other}, triggers: [{type: prometheus, metadata: {serverAddress: "http://wrong:9090"}}]}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: default}
spec: {scaleTargetRef: {name: web}, triggers: [{type: cron}, {type: prometheus, metadata: {serverAddress: "http://prometheus.monitoring:9090"}}]}
`

const service = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {ports: [{port: 8000}], selector: {app: web}}
---
apiVersion: v1
kind: Service
metadata: {name: alone, namespace: default}
spec: {ports: [{port: 80}], selector: {app: alone}}
`

// TestLocate finds a target and its Prometheus in a real API server, before and
// after KEDA is there.
func TestLocate(t *testing.T) {
	server := cluster.Start(t)
	server.Kubectl(t, service, "apply", "-f", "-")
	t.Setenv("HOME", t.TempDir())
	plan := func(args ...string) (record.BenchPlan, result) {
		t.Helper()
		got := run(t, nil, append([]string{"--kubeconfig", server.Kubeconfig(apiserver.Admin), "--dry-run", "-o", "json"}, args...)...)
		var plan record.BenchPlan
		if got.err == nil {
			got.err = record.Decode([]byte(got.stdout), record.KindBenchPlan, &plan)
		}
		return plan, got
	}
	const missing = "warning: no ScaledObject of web names a Prometheus: the server's own series will be missing; give --prometheus\n"
	without, got := plan("svc/web")
	if got.err != nil || without.Target.URL != "http://web.default.svc:8000" || without.Prometheus != nil || got.stderr != missing {
		t.Errorf("without KEDA: %+v, %+v", without, got)
	}

	server.Kubectl(t, kedaCRD, "apply", "-f", "-")
	server.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/scaledobjects.keda.sh")
	server.Kubectl(t, scalers, "apply", "-f", "-")
	with, got := plan("svc", "web")
	if got.err != nil || with.Prometheus == nil || with.Prometheus.URL != "http://prometheus.monitoring:9090" || with.Prometheus.PodRegex != "web-.*" || with.Prometheus.ScrapeLagSeconds != 17 || !strings.HasPrefix(got.stderr, "warning: scaledobject/web scales the target between 0 and 100 replicas while it is measured: the run would be refused") {
		t.Errorf("with KEDA: %+v, %+v", with.Prometheus, got)
	}
	own, got := plan("svc/web", "--url", "http://gateway", "--prometheus", "http://mine:9090")
	if got.err != nil || own.Target.URL != "http://gateway" || own.Prometheus.URL != "http://mine:9090" {
		t.Errorf("flags are weaker than the cluster: %+v, %+v", own, got)
	}
	if alone, got := plan("svc/alone"); got.err != nil || alone.Prometheus != nil || !strings.Contains(got.stderr, "no ScaledObject of alone") {
		t.Errorf("a Service that nothing scales: %+v, %+v", alone.Prometheus, got)
	}

	// Replicas that change spoil a measurement, so somebody decides what becomes
	// of the autoscaler before anything starts.
	server.Kubectl(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, "apply", "-n", "default", "-f", "-")
	live := run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Admin), "--image", "i", "svc/web")
	if text := failure.Text(live.err); failure.KindOf(live.err) != failure.Usage || !strings.Contains(text, "error: bench: scaledobject/web scales the target between 0 and 100 replicas while it is measured\nhint: add --hold-scaling ") {
		t.Errorf("a live autoscaler: %s", text)
	}
	for _, test := range []struct {
		flag string
		want record.BenchScaling
	}{
		{"--hold-scaling", record.BenchScaling{Mode: record.ScalingHeld, Object: "scaledobject/web", Replicas: 2}},
		{"--hold-scaling=1", record.BenchScaling{Mode: record.ScalingHeld, Object: "scaledobject/web", Replicas: 1}},
		{"--allow-scaling", record.BenchScaling{Mode: record.ScalingAllowed, Object: "scaledobject/web"}},
	} {
		if held, got := plan("svc/web", test.flag); got.err != nil || got.stderr != "" || held.Scaling == nil || *held.Scaling != test.want {
			t.Errorf("%s: %+v, %+v", test.flag, held.Scaling, got)
		}
	}
	if got := run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Admin), "--image", "i", "svc/web", "--hold-scaling"); failure.KindOf(got.err) != failure.NotFound ||
		!strings.Contains(failure.HintOf(got.err), "`kubectl inference manifests hold/rbac | kubectl apply -n default -f -`") {
		t.Errorf("without the identity: %s", failure.Text(got.err))
	}

	for name, test := range map[string]struct {
		args []string
		kind failure.Kind
		want string
	}{
		"hold and allow": {[]string{"svc/web", "--hold-scaling", "--allow-scaling"}, failure.Usage, "error: read --hold-scaling and --allow-scaling: they exclude each other\nhint: leave out one of the two\n"},
		"hold nothing":   {[]string{"svc/web", "--hold-scaling=0"}, failure.Usage, "error: read --hold-scaling: \"0\" is not a number of replicas from 1 to 1000\nhint: write --hold-scaling for what there is now, or --hold-scaling=1\n"},
		"hold a URL":     {[]string{"--url", "http://x", "--hold-scaling"}, failure.Usage, "error: read --hold-scaling: --url alone does not say what is scaled\nhint: give the target too, such as isvc/NAME --url URL\n"},
		"unknown type":   {[]string{"isvc/web"}, failure.NotFound, "error: find isvc/web: the server doesn't have a resource type \"isvc\"\nhint: give TYPE/NAME, such as isvc/NAME or svc/NAME; is KServe installed?\n"},
		"no name":        {[]string{"svc"}, failure.Usage, "error: find svc: no name given\nhint: give TYPE/NAME, such as isvc/NAME or svc/NAME\n"},
		"absent":         {[]string{"svc/gone"}, failure.NotFound, "error: find svc/gone in namespace default: services \"gone\" not found\nhint: `kubectl get services -A` lists what there is; -n chooses the namespace\n"},
		"not a server":   {[]string{"ns/default"}, failure.Usage, "error: measure Namespace default: it does not answer requests\nhint: give isvc/NAME, llmisvc/NAME, deploy/NAME or svc/NAME, or --url\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := plan(test.args...)
			if failure.KindOf(got.err) != test.kind || failure.Text(got.err) != test.want {
				t.Errorf("kind %d: %s", failure.KindOf(got.err), failure.Text(got.err))
			}
		})
	}
	t.Run("who may not list scalers has no Prometheus", func(t *testing.T) {
		server.Kubectl(t, "", "create", "role", "look", "-n", "default", "--verb=get", "--resource=services")
		server.Kubectl(t, "", "create", "rolebinding", "look", "-n", "default", "--role=look", "--user="+apiserver.Guest)
		got := run(t, nil, "--kubeconfig", server.Kubeconfig(apiserver.Guest), "--dry-run", "svc/web")
		const unread = "warning: cannot list horizontalpodautoscalers: whether something scales the target is not known; a case in which replicas change is not valid\n"
		if got.err != nil || got.stderr != missing+unread {
			t.Errorf("%+v", got)
		}
	})
}

func TestGet(t *testing.T) {
	server := cluster.Start(t)
	client, err := kubernetes.NewForConfig(server.Config(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile("../../manifests/examples/seed-benchreport.json")
	if err != nil {
		t.Fatal(err)
	}
	saved := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: runner.ReportName("nightly")}, Data: map[string]string{runner.ReportKey: string(report)}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), saved, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func(args ...string) result {
		return run(t, nil, append([]string{"get", "--kubeconfig", server.Kubeconfig(apiserver.Admin)}, args...)...)
	}
	if got := get("nightly", "-o", "jsonpath={.kind}"); got.err != nil || got.stdout != "BenchReport" {
		t.Errorf("%+v", got)
	}
	if got := get("nightly"); got.err != nil || !strings.Contains(got.stdout, "\nnext: kubectl inference envelope ") {
		t.Errorf("%+v", got)
	}
	got := get("gone")
	if want := "error: read the report of run gone: there is none in namespace default\nhint: `kubectl inference bench list -A` lists the runs; a run has a report when it has ended\n"; failure.KindOf(got.err) != failure.NotFound || failure.Text(got.err) != want {
		t.Errorf("%s", failure.Text(got.err))
	}
}
