package syncmodel

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

var cluster apiserver.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func run(t *testing.T, environ []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	factory := kube.NewFactory("test", rest.NoWarnings{})
	root := &cobra.Command{Use: "kubectl-inference", SilenceErrors: true, SilenceUsage: true}
	factory.AddFlags(root.PersistentFlags())
	root.AddCommand(New(factory, term.New(nil, &out, &errs, environ), "v1"))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"sync-model"}, args...))
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestRunName(t *testing.T) {
	plan := func(repo string) record.SyncPlan {
		return record.SyncPlan{Repo: repo, Revision: "main", Destination: "s3://models/base"}
	}
	for repo, want := range map[string]string{
		"Qwen/Qwen2.5-0.5B-Instruct":      "qwen2-5-0-5b-instruct-",
		"a/b":                             "b-",
		"a/1":                             "1-",
		"a/b__c..d":                       "b-c-d-",
		"a/x-._":                          "x-",
		"a/" + strings.Repeat("long", 20): strings.Repeat("long", 7) + "-",
		"a/" + strings.Repeat("a", 27) + "-" + "tail": strings.Repeat("a", 27) + "-",
	} {
		name := runName(plan(repo))
		if !strings.HasPrefix(name, want[:strings.LastIndex(want, "-")+1]) || name != runName(plan(repo)) {
			t.Errorf("%s: the run is %s, want %s", repo, name, want)
		}
		if problems := validation.IsDNS1123Label(jobrun.Spec{Command: "sync", Run: name}.Name()); len(problems) > 0 || strings.Contains(name, "--") {
			t.Errorf("%s: %s: %v", repo, name, problems)
		}
	}
	// The name tells deliveries apart, and is the same in every release.
	base := plan("a/b")
	if got := runName(base); got != "b-eed931c7" {
		t.Errorf("a run that is under way is not found again: %s", got)
	}
	for what, change := range map[string]func(*record.SyncPlan){
		"owner":       func(p *record.SyncPlan) { p.Repo = "c/b" },
		"revision":    func(p *record.SyncPlan) { p.Revision = "v2" },
		"destination": func(p *record.SyncPlan) { p.Destination = "s3://models/other" },
		"store":       func(p *record.SyncPlan) { p.S3Endpoint = "http://s3" },
		"Hub":         func(p *record.SyncPlan) { p.HubEndpoint = "http://hub" },
	} {
		other := base
		change(&other)
		if runName(other) == runName(base) {
			t.Errorf("another %s has the same run", what)
		}
	}
}

func TestRefuses(t *testing.T) {
	good := []string{"a/b", "--revision", "main", "--to", "s3://models/base"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no model":          {nil, "error: sync-model: give one model as OWNER/NAME\nhint: name the model as on the Hub: `kubectl inference sync-model OWNER/NAME ...`\n"},
		"no destination":    {[]string{"a/b"}, "error: sync-model a/b: no destination given\nhint: give --to s3://BUCKET/PREFIX\n"},
		"no revision":       {[]string{"a/b", "--to", "s3://m/p"}, "error: sync-model a/b: no revision given\nhint: give --revision SHA; `--revision main` resolves the branch and pins what it finds\n"},
		"negative retries":  {append(good, "--retries", "-1"), "error: read --retries: -1 is not a number of retries\nhint: give a number from 0 to 100\n"},
		"negative deadline": {append(good, "--deadline", "-1h"), "error: read --deadline: -1h0m0s is not a time for a Job\nhint: give a time from 1m to 336h\n"},
		"negative timeout":  {append(good, "--image", "i", "--timeout", "-1s"), "error: read --timeout: -1s is negative\n"},
		"no transfers":      {append(good, "--parallel", "0"), "error: read --parallel: 0 is out of range\nhint: give a number from 1 to 256\n"},
		"absurd transfers":  {append(good, "--parallel", "100000"), "error: read --parallel: 100000 is out of range\nhint: give a number from 1 to 256\n"},
		"absurd workers":    {append(good, "--workers", "1000"), "error: read --workers: 1000 is out of range\nhint: give a number from 1 to 64\n"},
		"absurd memory":     {append(good, "--memory", "9Pi"), "error: read --memory: 9Pi is out of range\nhint: give a quantity from 16Mi to 64Gi\n"},
		"negative memory":   {append(good, "--memory", "-1"), "error: read --memory: -1 is out of range\nhint: give a quantity from 16Mi to 64Gi\n"},
		"no quantity":       {append(good, "--memory", "lots"), "error: read --memory: \"lots\" is not a quantity\nhint: write it as 256Mi or 1Gi\n"},
		"root's port":       {append(good, "--metrics-port", "80"), "error: read --metrics-port: 80 is not a port for a pod\nhint: give a port from 1024 to 65535; the pod does not run as root\n"},
		"secret gateway":    {append(good, "--push-gateway", "http://me:word@push"), "error: read --push-gateway: it holds credentials: give them in a Secret\nhint: write it as http://host:port\n"},
		"secret proxy": {append(good, "--proxy", "http://me:word@proxy:3128"), "error: read --proxy: it holds credentials, which would stand in the Job for everybody to read\n" +
			"hint: put the URL into a Secret under the key HTTPS_PROXY and give --proxy-secret NAME\n"},
		"no proxy":           {append(good, "--no-proxy", "x"), "error: read --no-proxy: there is no proxy\nhint: give --proxy or --proxy-secret\n"},
		"certificates twice": {append(good, "--ca-bundle", "x", "--ca-configmap", "y"), "error: read --ca-bundle and --ca-configmap: both name certificates\nhint: leave out one of the two\n"},
		"no certificates":    {append(good, "--ca-bundle", "syncmodel_test.go"), "error: read --ca-bundle syncmodel_test.go: no certificate in PEM is in it\nhint: give your own authority's certificates alone; the public ones are built in\n"},
		"a toleration":       {append(good, "--toleration", "a:Never"), "error: read --toleration: \"a:Never\" has no such effect as \"Never\"\nhint: write it as KEY=VALUE:NoSchedule; the effects are NoSchedule, PreferNoSchedule and NoExecute\n"},
		"a label":            {append(good, "--node-selector", "a b=c"), ""},
		"workers, --local":   {append(good, "--local", "--workers", "2"), "error: read --workers: it is for a Job, not for --local\nhint: leave it out, or leave out --local\n"},
		"proxy, --local":     {append(good, "--local", "--proxy", "http://p:1"), "error: read --proxy: it is for a Job, not for --local\nhint: set HTTPS_PROXY in this environment instead\n"},
		"unknown preset":     {append(good, "--preset", "gguf", "--local"), "error: read plan: preset \"gguf\" is not known\nhint: the presets are all and vllm\n"},
		"an endpoint":        {append(good, "--s3-endpoint", "s3:9000"), ""},
		"a format":           {append(good, "-o", "xml"), ""},
		"a Secret, --local":  {append(good, "--local", "--hub-secret", "hub"), "error: sync-model: --local does not read Secrets of a cluster\nhint: set HF_TOKEN and the AWS variables in this environment instead\n"},
		"no image":           {good, "error: start job: this build of the plugin has no default image\nhint: give --image, or set KUBECTL_INFERENCE_IMAGE; with --local no image is needed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, nil, test.args...)
			if failure.KindOf(err) != failure.Usage || stdout != "" {
				t.Fatalf("error %v, standard output %q", err, stdout)
			}
			if diff := cmp.Diff(test.want, failure.Text(err)); test.want != "" && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestJob starts the Job in a real API server and reads what it carries.
func TestJob(t *testing.T) {
	server := cluster.Start(t)
	client, err := kubernetes.NewForConfig(server.Config(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	core := client.CoreV1()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	if _, err := core.ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta("inference-sync")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]map[string]string{"hub": {keyToken: "hf_secret"}, "s3": {jobrun.KeyAccess: "access", jobrun.KeySecret: "very-secret"}} {
		if _, err := core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: meta(name), StringData: keys}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"Qwen/Qwen2.5-0.5B-Instruct", "--revision", "main", "--to", "s3://models/base", "--kubeconfig", server.Kubeconfig(apiserver.Admin),
		"--image", "example.test/job:1", "--hub-secret", "hub", "--s3-secret", "s3", "--s3-endpoint", "https://s3.example.com", "--exclude", "*.bin", "--wait=false"}
	if _, _, err := run(t, []string{keyToken + "=hf_mine"}, args...); err != nil {
		t.Fatal(err)
	}
	jobs, err := client.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{LabelSelector: jobrun.LabelComponent + "=sync"})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("%d Jobs, error %v", len(jobs.Items), err)
	}
	job := jobs.Items[0]
	pod := job.Spec.Template.Spec
	if *job.Spec.BackoffLimit != 3 || !*pod.AutomountServiceAccountToken || pod.ServiceAccountName != "inference-sync" {
		t.Errorf("%d retries, token %v, account %s", *job.Spec.BackoffLimit, *pod.AutomountServiceAccountToken, pod.ServiceAccountName)
	}
	secrets := map[string]string{}
	var plan record.SyncPlan
	for _, variable := range pod.Containers[0].Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			secrets[variable.Name] = variable.ValueFrom.SecretKeyRef.Name + "/" + variable.ValueFrom.SecretKeyRef.Key
		}
		if variable.Name == jobrun.PlanEnv {
			if err := record.Decode([]byte(variable.Value), record.KindSyncPlan, &plan); err != nil {
				t.Error(err)
			}
		}
	}
	want := map[string]string{keyToken: "hub/HF_TOKEN", jobrun.KeyAccess: "s3/AWS_ACCESS_KEY_ID", jobrun.KeySecret: "s3/AWS_SECRET_ACCESS_KEY"}
	if diff := cmp.Diff(want, secrets); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	wantPlan := record.SyncPlan{TypeMeta: record.Meta(record.KindSyncPlan), Repo: "Qwen/Qwen2.5-0.5B-Instruct", Revision: "main", Destination: "s3://models/base",
		S3Endpoint: "https://s3.example.com", Exclude: []string{"*.bin"}, Preset: record.PresetAll, Parallel: 8, Workers: 1, MemoryBytes: 256 << 20}
	if diff := cmp.Diff(wantPlan, plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "very-secret") || strings.Contains(text, "hf_secret") || strings.Contains(text, "hf_mine") {
		t.Error("a secret stands in the Job")
	}

	// The buffers and what the program needs beside them fit.
	if limit := pod.Containers[0].Resources.Limits.Memory().Value(); limit < plan.MemoryBytes+48<<20 {
		t.Errorf("the limit of %d bytes is too small", limit)
	}

	// The same delivery finds the run, and nobody attaches who does not wait.
	if _, stderr, err := run(t, nil, args...); err != nil || !strings.HasPrefix(stderr, "already running: job/inference-sync-qwen2-5-0-5b-instruct-") {
		t.Errorf("a second start says %q, error %v", stderr, err)
	}
	// A dry run is a Job of its own: it does not touch the delivery's.
	if _, stderr, err := run(t, nil, append(args, "--dry-run")...); err != nil || !strings.HasPrefix(stderr, "started job/"+job.Name+"-plan ") {
		t.Errorf("a dry run beside it says %q, error %v", stderr, err)
	}
	after, err := client.BatchV1().Jobs("default").Get(t.Context(), job.Name, metav1.GetOptions{})
	if err != nil || after.UID != job.UID {
		t.Errorf("the delivery's Job is replaced: %v", err)
	}
	for _, command := range []string{"attach", "get", "cancel"} {
		if _, _, err := run(t, nil, command, "a/b", "--kubeconfig", server.Kubeconfig(apiserver.Admin)); failure.KindOf(err) != failure.Usage {
			t.Errorf("%s of a name that is none: %v", command, err)
		}
	}
}

func TestRender(t *testing.T) {
	base := record.SyncResult{
		TypeMeta: record.Meta(record.KindSyncResult), Repo: "owner/name", RequestedRevision: strings.Repeat("a", 40), Revision: strings.Repeat("a", 40), Location: "s3://models/base/owner/name/" + strings.Repeat("a", 40),
		Total: record.FileCount{Files: 3, Bytes: 3 << 30}, Uploaded: record.FileCount{Files: 2, Bytes: 2 << 30}, Present: record.FileCount{Files: 1, Bytes: 1 << 30}, DurationSeconds: 12.34,
		ManifestSHA256: strings.Repeat("b", 64), RootDigest: strings.Repeat("c", 64),
	}
	for name, change := range map[string]func(*record.SyncResult){
		"complete.txt": func(*record.SyncResult) {},
		"already.txt": func(r *record.SyncResult) {
			r.AlreadyComplete, r.RequestedRevision = true, "main"
			r.Uploaded, r.Present = record.FileCount{}, r.Total
		},
		"dry-run.txt": func(r *record.SyncResult) {
			r.DryRun, r.ManifestSHA256, r.RootDigest = true, "", ""
			r.Skipped = record.FileCount{Files: 1, Bytes: 100}
			r.Warnings = []string{"no digest\x1b[2J is stated for README.md"}
			r.Files = []record.SyncFilePlan{{Path: "model.safetensors", Size: 2 << 30, Action: record.ActionUpload, Reason: "absent"}, {Path: "config\n.json", Size: 600, Action: record.ActionPresent, Reason: "same digest"}, {Path: "README.md", Size: 100, Action: record.ActionSkip, Reason: "preset vllm"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := base
			change(&result)
			var out bytes.Buffer
			o := &options{streams: term.New(nil, &out, &bytes.Buffer{}, nil)}
			data, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.show(data); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, out.String())
		})
	}
}

func TestShowWithoutAResult(t *testing.T) {
	o := &options{streams: term.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, nil)}
	if err := o.show(nil); failure.KindOf(err) != failure.NotFound || failure.HintOf(err) == "" {
		t.Errorf("nothing: %v", err)
	}
	if err := o.show([]byte(`{"kind":"Other"}`)); failure.KindOf(err) != failure.Usage {
		t.Errorf("another document: %v", err)
	}
}
