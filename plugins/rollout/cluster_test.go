package rollout

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/manifests"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var shared apiserver.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// namespace makes one, and returns the server.
func namespace(t *testing.T, name string) *apiserver.Server {
	t.Helper()
	server := shared.Start(t)
	server.Kubectl(t, "", "create", "namespace", name)
	return server
}

func TestDryRun(t *testing.T) {
	server := namespace(t, "dry")
	admin := server.Kubeconfig(apiserver.Admin)
	args := []string{"web", "-n", "dry", "--model", model + "/", "--engine-image", "example.test/vllm:1", "--dry-run"}
	got := run(t, admin, "", args...)
	if got.err != nil || got.stderr != "" {
		t.Fatalf("%v %s", got.err, got.stderr)
	}
	// Without KServe it is a Deployment. What the server adds is shown too.
	for _, line := range []string{"+++ proposed/Deployment/web", "+++ proposed/Service/web", "+        - " + model, "+        image: example.test/vllm:1", "+      dnsPolicy: ClusterFirst", "+    targetPort: http"} {
		if !strings.Contains(got.stdout, line+"\n") {
			t.Errorf("%q is missing in\n%s", line, got.stdout)
		}
	}
	if there := server.Kubectl(t, "", "get", "deployments,services", "-n", "dry", "-o", "name"); there != "" {
		t.Errorf("it made %s", there)
	}

	// The plan is the document of -o json, and is what a Job would apply.
	got = run(t, admin, "", append(args, "-o", "json", "--revision", strings.Repeat("a", 40), "--verify", "manifest")...)
	var plan record.RolloutPlan
	if err := record.Decode([]byte(got.stdout), record.KindRolloutPlan, &plan); err != nil {
		t.Fatal(err)
	}
	objects := plan.Objects
	plan.Objects = nil
	want := record.RolloutPlan{
		TypeMeta: record.Meta(record.KindRolloutPlan), Name: "web", Namespace: "dry", Model: record.RolloutModel{URI: model, Revision: strings.Repeat("a", 40)},
		Verify: "manifest", Deployment: "web", Workload: map[string]string{}, URL: "http://web.dry.svc", ServedModel: "web", TimeoutSeconds: 1800,
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Error(diff)
	}

	// Carried out, the second run has nothing to say.
	for _, object := range objects {
		server.Kubectl(t, string(object), "apply", "--server-side", "--field-manager=kubectl-inference", "-f", "-")
	}
	got = run(t, admin, "", args...)
	if got.err != nil || got.stdout != "web is as planned: nothing would change (dry run)\n" {
		t.Errorf("got %q, %v", got.stdout, got.err)
	}
	// Another model is one line.
	args[4] = "s3://models/org/name/next"
	got = run(t, admin, "", args...)
	if got.err != nil || !strings.Contains(got.stdout, "\n-        - "+model+"\n+        - s3://models/org/name/next\n") || strings.Contains(got.stdout, "Service/web") {
		t.Errorf("got %s, %v", got.stdout, got.err)
	}
}

// Where KServe is, the predictor is an InferenceService.
func TestKServe(t *testing.T) {
	server := apiserver.Start(t)
	server.Kubectl(t, "", "apply", "--server-side", "-f", "../../test/lab/kserve/crds/inferenceservices.yaml")
	server.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/inferenceservices.serving.kserve.io")
	args := []string{"web", "--model", model, "--engine-image", "example.test/vllm:1", "--dry-run"}
	admin := server.Kubeconfig(apiserver.Admin)
	got := run(t, admin, "", args...)
	if got.err != nil || !strings.Contains(got.stdout, "+++ proposed/InferenceService/web\n") || strings.Contains(got.stdout, "Deployment") {
		t.Errorf("got %s, %v", got.stdout, got.err)
	}
	var plan record.RolloutPlan
	if err := record.Decode([]byte(run(t, admin, "", append(args, "-o", "json")...).stdout), record.KindRolloutPlan, &plan); err != nil {
		t.Fatal(err)
	}
	if plan.Deployment != "" || plan.URL != "http://web-predictor.default.svc" || len(plan.Objects) != 1 {
		t.Errorf("got %+v", plan)
	}
	server.Kubectl(t, string(plan.Objects[0]), "apply", "--server-side", "--field-manager=kubectl-inference", "-f", "-")
	if got := run(t, admin, "", args...); got.err != nil || got.stdout != "web is as planned: nothing would change (dry run)\n" {
		t.Errorf("got %s, %v", got.stdout, got.err)
	}
	// A Deployment is still to be had.
	if got := run(t, admin, "", append(args, "--kind", "deployment")...); got.err != nil || !strings.Contains(got.stdout, "+++ proposed/Deployment/web\n") {
		t.Errorf("got %s, %v", got.stdout, got.err)
	}
}

// Without --dry-run the difference goes to standard error, and a Job gets the
// very plan that --dry-run prints.
func TestStartsJob(t *testing.T) {
	server := namespace(t, "job")
	admin := server.Kubeconfig(apiserver.Admin)
	args := []string{"web", "-n", "job", "--model", model, "--engine-image", "example.test/vllm:1", "--s3-secret", "s3-keys"}
	planned := run(t, admin, "", append(args, "--dry-run", "-o", "json")...)
	rbac, err := fs.ReadFile(manifests.Files, "rbac/rollout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, run(t, admin, "", append(args, "--image", "example.test/job:1", "--wait=false")...), failure.NotFound, "there is no ServiceAccount job/inference-rollout", "rbac/rollout")
	server.Kubectl(t, string(rbac), "apply", "-n", "job", "-f", "-")
	server.Kubectl(t, "", "create", "secret", "generic", "s3-keys", "-n", "job", "--from-literal=AWS_ACCESS_KEY_ID=a", "--from-literal=AWS_SECRET_ACCESS_KEY=b")
	got := run(t, admin, "", append(args, "--image", "example.test/job:1", "--wait=false")...)
	if got.err != nil || planned.err != nil {
		t.Fatal(got.err, planned.err)
	}
	if !strings.Contains(got.stderr, "creates Deployment/web in namespace job") || strings.Contains(got.stderr, "+++") || got.stdout != "" {
		t.Errorf("got %q and %q", got.stdout, got.stderr)
	}
	var list batchv1.JobList
	if err := json.Unmarshal([]byte(server.Kubectl(t, "", "get", "jobs", "-n", "job", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("%d jobs", len(list.Items))
	}
	pod := list.Items[0].Spec.Template.Spec
	if pod.ServiceAccountName != "inference-rollout" || pod.Containers[0].Image != "example.test/job:1" {
		t.Errorf("got %s, %s", pod.ServiceAccountName, pod.Containers[0].Image)
	}
	var carried, want record.RolloutPlan
	for _, variable := range pod.Containers[0].Env {
		if variable.Name == jobrun.PlanEnv {
			if err := record.Decode([]byte(variable.Value), record.KindRolloutPlan, &carried); err != nil {
				t.Fatal(err)
			}
		}
		if variable.Name == jobrun.KeySecret && variable.ValueFrom.SecretKeyRef.Name != "s3-keys" {
			t.Errorf("got %+v", variable)
		}
	}
	if err := record.Decode([]byte(planned.stdout), record.KindRolloutPlan, &want); err != nil {
		t.Fatal(err)
	}
	compact := cmp.Transformer("compact", func(raw json.RawMessage) string {
		var buffer bytes.Buffer
		if err := json.Compact(&buffer, raw); err != nil {
			return string(raw)
		}
		return buffer.String()
	})
	if diff := cmp.Diff(want, carried, compact); diff != "" {
		t.Error(diff)
	}
	if objects := server.Kubectl(t, "", "get", "deployments", "-n", "job", "-o", "name"); objects != "" {
		t.Errorf("the plugin itself made %s", objects)
	}
}

func TestPlanRefused(t *testing.T) {
	server := namespace(t, "refused")
	admin, guest := server.Kubeconfig(apiserver.Admin), server.Kubeconfig(apiserver.Guest)
	base := []string{"web", "-n", "refused", "--model", model, "--dry-run"}
	with := func(args ...string) []string { return append(append([]string{}, base...), args...) }
	image := []string{"--engine-image", "example.test/vllm:1"}

	wantFailure(t, run(t, guest, "", with(image...)...), failure.Denied, "get Deployment refused/web", "kubectl auth can-i get deployments.apps")
	wantFailure(t, run(t, admin, "", with(append(image, "--kind", "inferenceservice")...)...), failure.NotFound, "plan InferenceService web", "KServe is not installed")
	wantFailure(t, run(t, admin, "", with(append(image, "-n", "nowhere")...)...), failure.NotFound, `namespaces "nowhere" not found`, "")

	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: web}\n---\n"
	wantFailure(t, run(t, admin, role+own, with("-f", "-")...), failure.Usage, "plan ClusterRole web: it belongs to no namespace", "take it out of the file")
	wantFailure(t, run(t, admin, strings.Replace(own, "selector: {matchLabels: {app: web}}, ", "", 1), with("-f", "-")...), failure.Usage, "plan Deployment refused/web", "")

	// Somebody else's object: its fields are not taken.
	server.Kubectl(t, own, "apply", "-n", "refused", "-f", "-")
	wantFailure(t, run(t, admin, own, with("-f", "-")...), failure.Differs, "conflict with \"kubectl-client-side-apply\"", "another manager owns the field")
}

const own = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: engine, image: "example.test/vllm:1", args: ["s3://old/model"]}]}}}
`

// What `kubectl get -o yaml` prints may be given as a file.
func TestOwnFromCluster(t *testing.T) {
	server := namespace(t, "own")
	server.Kubectl(t, own, "apply", "-n", "own", "--server-side", "--field-manager=kubectl-inference", "-f", "-")
	live := server.Kubectl(t, "", "get", "deployment", "web", "-n", "own", "-o", "yaml", "--show-managed-fields")
	got := run(t, server.Kubeconfig(apiserver.Admin), live, "web", "-n", "own", "--model", model, "--dry-run", "-f", "-")
	if got.err != nil || !strings.Contains(got.stdout, "-        - s3://old/model\n+        - "+model+"\n") {
		t.Errorf("got %s, %v", got.stdout, got.err)
	}
	plan := run(t, server.Kubeconfig(apiserver.Admin), live, "web", "-n", "own", "--model", model, "--dry-run", "-f", "-", "-o", "json")
	var document record.RolloutPlan
	if err := json.Unmarshal([]byte(plan.stdout), &document); err != nil {
		t.Fatal(err)
	}
	if text := string(document.Objects[0]); strings.Contains(text, "resourceVersion") || strings.Contains(text, "managedFields") || strings.Contains(text, `"status"`) {
		t.Errorf("got %s", text)
	}
}
