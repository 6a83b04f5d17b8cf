package jobrun

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

func exampleSpec() Spec {
	return Spec{
		Command: "sync", Run: "tiny-0a1b2c3d", Namespace: "models", Image: "example.test/job:1", PullSecret: "registry",
		Plan:      map[string]any{"destination": "s3://models/$(HOME)/$$x"},
		SecretEnv: []SecretEnv{{"HF_TOKEN", "hub", "HF_TOKEN"}, {KeySecret, "s3", KeySecret}, {KeyAccess, "s3", KeyAccess}},
		Retries:   3,
	}
}

func TestJob(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"job-sync.yaml": func(*Spec) {},
		"job-bench.yaml": func(s *Spec) {
			*s = Spec{Command: "bench", Run: "nightly.7", Namespace: "llm", Image: "example.test/job:1", ServiceAccount: "own", Plan: 1, CallsAPI: true}
		},
		"job-sync-workers.yaml": func(s *Spec) {
			s.Workers, s.Memory, s.MetricsPort, s.Deadline = 3, 448<<20, 9090, time.Hour
			network := NetworkFlags{Proxy: "http://proxy.example:3128", NoProxy: ".example.com", CAConfigMap: "trust/ca-bundle.crt"}
			network.Apply(s)
			placement := PlacementFlags{NodeSelector: map[string]string{"pool": "cpu"}, Tolerations: []string{"dedicated=infra:NoSchedule"}}
			if err := placement.Validate(); err != nil {
				panic(err)
			}
			placement.Apply(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := exampleSpec()
			change(&spec)
			job, err := spec.Job()
			if err != nil {
				t.Fatal(err)
			}
			data, err := yaml.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, string(data))
		})
	}
}

// TestPodIsAdmitted asks a real API server whether the pod satisfies the
// "restricted" Pod Security Standard, and the Job every rule for Jobs.
func TestPodIsAdmitted(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := exampleSpec()
	spec.Namespace, spec.ServiceAccount, spec.Run = namespace, "default", strings.Repeat("long-", 11)+"name"
	job, err := spec.Job()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	several := spec
	several.Run, several.Workers, several.Memory, several.MetricsPort = strings.Repeat("long-", 8)+"name", 64, 448<<20, 9090
	indexed, err := several.Job()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jobs.create(t.Context(), indexed); err != nil {
		t.Error(err)
	}
	// No controller runs here: the account a pod needs is not made by itself.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := jobs.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: job.Spec.Template.Labels}, Spec: job.Spec.Template.Spec}
	if _, err := jobs.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	pod.Name, pod.Spec.SecurityContext = "two", nil
	pod.Spec.Containers[0].SecurityContext = nil
	if _, err := jobs.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err == nil {
		t.Error("a pod without a security context is admitted: this test proves nothing")
	}
}

// expand is what Kubernetes does to the value of a variable, where none of the
// named variables exists (k8s.io/kubernetes, third_party/forked/golang/expansion).
func expand(value string) string { return strings.ReplaceAll(value, "$$", "$") }

func TestPlanArrivesAsItIs(t *testing.T) {
	spec := exampleSpec()
	job, err := spec.Job()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := expand(planOf(job)), `{"destination":"s3://models/$(HOME)/$$x"}`; got != want {
		t.Errorf("the pod gets the plan %s, want %s", got, want)
	}
}

func TestName(t *testing.T) {
	long := strings.Repeat("a", 62)
	for name, test := range map[string]struct{ command, run, want string }{
		"short":               {"bench", "nightly-7", "inference-bench-nightly-7"},
		"just fits":           {"sync", strings.Repeat("a", 48), "inference-sync-" + strings.Repeat("a", 48)},
		"too long":            {"rollout", long + "a", "inference-rollout-" + strings.Repeat("a", 36) + "-6bc20c1f"},
		"differs at its end":  {"rollout", long + "b", "inference-rollout-" + strings.Repeat("a", 36) + "-11c18102"},
		"no hyphens in a row": {"sync", strings.Repeat("a", 38) + "--" + strings.Repeat("a", 20), "inference-sync-" + strings.Repeat("a", 38) + "-db1ae5f1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Spec{Command: test.command, Run: test.run}.Name()
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if problems := validation.IsDNS1123Label(got); len(problems) > 0 {
				t.Errorf("%s: %v", got, problems)
			}
		})
	}
}

func TestValidateRun(t *testing.T) {
	for run, valid := range map[string]bool{
		"nightly-7": true, "7": true, "v1.2": true, strings.Repeat("a", 63): true,
		"": false, "Nightly": false, "a b": false, "a/b": false, "-a": false, "a_b": false, strings.Repeat("a", 64): false,
	} {
		err := ValidateRun(run)
		if (err == nil) != valid {
			t.Errorf("%q: %v", run, err)
		}
		if err != nil && failure.KindOf(err) != failure.Usage {
			t.Errorf("%q: kind %d", run, failure.KindOf(err))
		}
		if _, jobErr := (Spec{Command: "bench", Run: run}).Job(); (jobErr == nil) != valid {
			t.Errorf("%q: the Job says %v", run, jobErr)
		}
	}
}
