package syncmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

const verifySHA = "7ae557604adf67be50417f59c2c2f167def9a775"

func TestVerifyRefuses(t *testing.T) {
	directory := t.TempDir()
	private := filepath.Join(directory, "key.pem")
	if err := os.WriteFile(private, []byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no place":          {nil, "error: verify: give one s3://BUCKET/PREFIX\nhint: name the place in the bucket: `kubectl inference sync-model verify s3://BUCKET/PREFIX`\n"},
		"a path":            {[]string{"models/base"}, "error: read plan: \"models/base\" is not an S3 location\nhint: write it as s3://bucket/prefix\n"},
		"both modes":        {[]string{"s3://m/p", "--fast", "--full"}, "error: verify: --fast and --full exclude each other\nhint: --full does all that --fast does\n"},
		"no key file":       {[]string{"s3://m/p", "--local", "--key", directory + "/none"}, "error: read --key: open " + directory + "/none: no such file or directory\nhint: give a file in PEM\n"},
		"a folder as key":   {[]string{"s3://m/p", "--local", "--key", directory}, "error: read --key: " + directory + " is not a key\nhint: give a file in PEM\n"},
		"a private key":     {[]string{"s3://m/p", "--local", "--key", private}, "error: read --key " + private + ": read public key: it is a private key, which should not leave its Secret\nhint: make it with `openssl pkey -in signing-key.pem -pubout -out signing-key.pub.pem`\n"},
		"a Secret, --local": {[]string{"s3://m/p", "--local", "--s3-secret", "a"}, "error: verify: --local does not read Secrets of a cluster\nhint: set the AWS variables in this environment instead\n"},
		"many at a time":    {[]string{"s3://m/p", "--parallel", "100000"}, "error: read plan: 100000 objects at a time is not from 0 to 256\nhint: the default suits most stores\n"},
		"no image":          {[]string{"s3://m/p"}, "error: start job: this build of the plugin has no default image\nhint: give --image, or set KUBECTL_INFERENCE_IMAGE; with --local no image is needed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, nil, append([]string{"verify"}, test.args...)...)
			if failure.KindOf(err) != failure.Usage || failure.Text(err) != test.want {
				t.Errorf("kind %d:\n%s\nwant:\n%s", failure.KindOf(err), failure.Text(err), test.want)
			}
		})
	}
}

func TestPlaceName(t *testing.T) {
	seen := map[string]string{}
	for location, want := range map[string]string{
		"s3://models/base/Qwen/Qwen2.5-0.5B/" + verifySHA: "qwen2-5-0-5b-",
		"s3://models/base/":                         "base-",
		"s3://models":                               "models-",
		"s3://models/" + verifySHA:                  "models-",
		"s3://models/ü":                             "",
		"s3://models/" + strings.Repeat("long", 20): strings.Repeat("long", 7) + "-",
	} {
		name := placeName(location, "", "fast", "")
		if problems := validation.IsDNS1123Label(jobrun.Spec{Command: "verify", Run: name}.Name()); len(problems) > 0 || !strings.HasPrefix(name, want) || len(name) != len(want)+8 {
			t.Errorf("%s: %s: %v", location, name, problems)
		}
		if other, found := seen[name]; found {
			t.Errorf("%s and %s have the same run", other, location)
		}
		seen[name] = location
		if placeName(location, "", "full", "") == name {
			t.Errorf("%s: another mode is the same run", location)
		}
	}
}

// TestVerifyJob: the Job has the plan, the sync's identity and no token of the
// API, and its credentials come from a Secret.
func TestVerifyJob(t *testing.T) {
	client, namespace := prepared(t)
	_, stderr, err := run(t, nil, "verify", "s3://models/base/a/b/"+verifySHA, "--image", "job:test", "--s3-secret", "keys", "--s3-endpoint", "http://s3:9000", "--full", "--wait=false",
		"-n", namespace, "--kubeconfig", cluster.Start(t).Kubeconfig(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stderr, "kubectl inference sync-model verify attach b-") {
		t.Errorf("it does not say how to follow the Job: %s", stderr)
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("%d Jobs, error %v", len(jobs.Items), err)
	}
	pod := jobs.Items[0].Spec.Template.Spec
	if pod.ServiceAccountName != "inference-sync" || *pod.AutomountServiceAccountToken || pod.Containers[0].Args[0] != "verify" {
		t.Errorf("%s %v %v", pod.ServiceAccountName, *pod.AutomountServiceAccountToken, pod.Containers[0].Args)
	}
	var plan record.VerifyPlan
	secrets := 0
	for _, variable := range pod.Containers[0].Env {
		if variable.Name == jobrun.PlanEnv {
			if err := record.Decode([]byte(variable.Value), record.KindVerifyPlan, &plan); err != nil {
				t.Fatal(err)
			}
		}
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			secrets++
		}
	}
	want := record.VerifyPlan{TypeMeta: record.Meta(record.KindVerifyPlan), Location: "s3://models/base/a/b/" + verifySHA, S3Endpoint: "http://s3:9000", Mode: record.VerifyFull}
	if plan != want || secrets != 2 {
		t.Errorf("%d secrets, plan %+v", secrets, plan)
	}
}

// prepared returns a namespace with the sync's identity and a Secret "keys".
func prepared(t *testing.T) (client kubernetes.Interface, namespace string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Start(t).Config(apiserver.Admin))
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "place-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace = made.Name
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "inference-sync"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{jobrun.KeyAccess: "a", jobrun.KeySecret: "b"}}
	_, accountErr := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	_, secretErr := client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	if err := errors.Join(accountErr, secretErr); err != nil {
		t.Fatal(err)
	}
	return client, namespace
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	one, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(one) == string(other) && string(one) != "null"
}

func TestRenderVerification(t *testing.T) {
	sound := record.ModelVerification{
		Location: "s3://models/base/lab/tiny/" + verifySHA, Mode: record.VerifyFast, Matches: true, ModelID: "lab/tiny", Revision: verifySHA,
		RootDigest: strings.Repeat("a", 64), ManifestSHA256: strings.Repeat("b", 64), Signature: record.Signature{State: record.SignatureValid, KeyID: strings.Repeat("c", 64)},
		Listed: record.FileCount{Files: 3, Bytes: 3 << 20}, Proved: record.FileCount{Files: 3, Bytes: 3 << 20}, DurationSeconds: 0.25, Time: time.Unix(0, 0),
	}
	broken := sound
	broken.Mode, broken.Matches, broken.BytesRead, broken.Proved, broken.Signature = record.VerifyFull, false, 2<<20, record.FileCount{Files: 1, Bytes: 1 << 20}, record.Signature{State: record.SignatureUnchecked, KeyID: "c\x1b[31m"}
	broken.ProblemCount, broken.Warnings = 1200, []string{"a warning"}
	broken.Problems = []record.ModelProblem{
		{Path: "config.json", Kind: record.ProblemMissing, Expected: "610 bytes", Found: "nothing"},
		{Path: "model\r\n\x1b[2J.bin", Kind: record.ProblemExtra, Expected: "nothing", Found: "7 bytes"},
		{Path: "model.safetensors", Kind: record.ProblemContent, Expected: strings.Repeat("d", 64), Found: strings.Repeat("e", 64)},
	}
	for name, result := range map[string]record.ModelVerification{"sound": sound, "broken": broken} {
		var out bytes.Buffer
		o := &verifyOptions{bucketJob: bucketJob{streams: term.New(nil, &out, &bytes.Buffer{}, nil)}}
		result.TypeMeta = record.Meta(record.KindModelVerification)
		data, err := record.Encode(result)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.show(data); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "verify-"+name+".txt", out.String())
	}
}

// TestCronJob: the example is a CronJob whose pod is of the restricted level, as
// all Jobs of the plugin, and whose plan this build reads.
func TestCronJob(t *testing.T) {
	data, err := os.ReadFile("../../manifests/examples/verify-cronjob.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cron batchv1.CronJob
	if err := yaml.UnmarshalStrict(data, &cron); err != nil {
		t.Fatal(err)
	}
	job, err := jobrun.Spec{Command: "verify", Run: "a", Image: "x"}.Job()
	if err != nil {
		t.Fatal(err)
	}
	got, want := cron.Spec.JobTemplate.Spec.Template.Spec, job.Spec.Template.Spec
	if !equalJSON(t, got.SecurityContext, want.SecurityContext) || !equalJSON(t, got.Containers[0].SecurityContext, want.Containers[0].SecurityContext) {
		t.Error("its pods are not as restricted as those of a Job")
	}
	if !equalJSON(t, cron.Spec.JobTemplate.Spec.PodFailurePolicy, job.Spec.PodFailurePolicy) || got.Containers[0].Name != want.Containers[0].Name {
		t.Error("it retries what a Job does not")
	}
	var plan record.VerifyPlan
	if err := record.Decode([]byte(got.Containers[0].Env[0].Value), record.KindVerifyPlan, &plan); err != nil || plan.Validate() != nil {
		t.Errorf("its plan: %v %v", err, plan.Validate())
	}
}
