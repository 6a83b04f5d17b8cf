package jobrun

import (
	"context"
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// prepare makes what the Job of exampleSpec needs.
func prepare(t *testing.T, jobs Jobs, namespace string) Spec {
	t.Helper()
	spec := exampleSpec()
	spec.Namespace = namespace
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: namespace} }
	if _, err := jobs.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta("inference-sync")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, keys := range map[string]map[string]string{"hub": {"HF_TOKEN": "hf_x"}, "s3": {KeyAccess: "a", KeySecret: "b"}} {
		if _, err := jobs.Client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: meta(name), StringData: keys}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return spec
}

// end gives a Job the condition that ends it.
func end(t *testing.T, jobs Jobs, job *batchv1.Job, kind batchv1.JobConditionType) {
	t.Helper()
	job, err := jobs.Client.BatchV1().Jobs(job.Namespace).Get(t.Context(), job.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	before := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}[kind]
	job.Status.StartTime = &now
	if kind == batchv1.JobComplete {
		job.Status.CompletionTime = &now
		job.Status.Succeeded = 1
	}
	for _, one := range []batchv1.JobConditionType{before, kind} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: one, Status: corev1.ConditionTrue,
			LastTransitionTime: now, LastProbeTime: now, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"})
	}
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	if _, err := jobs.Client.BatchV1().Jobs(job.Namespace).UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestStart(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := prepare(t, jobs, namespace)
	start := func(again bool) Started {
		t.Helper()
		started, err := jobs.Start(t.Context(), spec, again)
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	first := start(false)
	if first.Attached || first.Job.Name != "inference-sync-tiny-0a1b2c3d" {
		t.Errorf("first: %v %s", first.Attached, first.Job.Name)
	}
	if manager := first.Job.ManagedFields[0].Manager; manager != "kubectl-inference" {
		t.Errorf("the Job is managed by %q", manager)
	}
	for _, again := range []bool{false, true} {
		if same := start(again); !same.Attached || same.Job.UID != first.Job.UID {
			t.Errorf("a second start (again %v) makes another Job", again)
		}
	}

	other := spec
	other.Plan = map[string]any{"destination": "s3://elsewhere"}
	_, err := jobs.Start(t.Context(), other, true)
	checkFailure(t, err, failure.Usage, "error: create job "+namespace+"/inference-sync-tiny-0a1b2c3d: a run of that name is under way with another plan\n"+
		"hint: follow that one: kubectl inference sync-model attach tiny-0a1b2c3d -n "+namespace+"\n"+
		"hint: stop it: kubectl inference sync-model cancel tiny-0a1b2c3d -n "+namespace+"\n")

	end(t, jobs, first.Job, batchv1.JobFailed)
	_, err = jobs.Start(t.Context(), spec, false)
	checkFailure(t, err, failure.Usage, "error: create job "+namespace+"/inference-sync-tiny-0a1b2c3d: a run of that name has ended already\n"+
		"hint: choose another --name, or remove it and its result: kubectl inference sync-model cancel tiny-0a1b2c3d -n "+namespace+"\n")
	if replaced := start(true); replaced.Attached || replaced.Job.UID == first.Job.UID {
		t.Error("an ended Job is not replaced")
	}
}

// TestStartWaitsForTheName: a Job that somebody deletes keeps its name until its
// finalizers are done.
func TestStartWaitsForTheName(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := prepare(t, jobs, namespace)
	held, err := spec.Job()
	if err != nil {
		t.Fatal(err)
	}
	held.Finalizers = []string{"example.test/hold"}
	held, err = jobs.create(t.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	if err := jobs.Client.BatchV1().Jobs(namespace).Delete(t.Context(), held.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := jobs.remove(ctx, held); err == nil {
		t.Error("removing a held Job succeeds")
	}
	// The second request for the Job is the wait; the name is let go then.
	config := cluster.Start(t).Config(apiserver.Admin)
	gets := 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Method == http.MethodGet && request.URL.Path == "/apis/batch/v1/namespaces/"+namespace+"/jobs/"+held.Name {
				if gets++; gets == 2 {
					release(t, jobs, namespace, held.Name)
				}
			}
			return response, err
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	started, err := Jobs{Client: client, Poll: time.Millisecond}.Start(t.Context(), spec, false)
	if err != nil || started.Attached || started.Job.UID == held.UID {
		t.Errorf("started %+v, error %v", started.Attached, err)
	}
}

func release(t *testing.T, jobs Jobs, namespace, name string) {
	job, err := jobs.Client.BatchV1().Jobs(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err == nil {
		job.Finalizers = nil
		_, err = jobs.Client.BatchV1().Jobs(namespace).Update(t.Context(), job, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Error(err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestStartLacksWhatItNeeds(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := prepare(t, jobs, namespace)
	for name, test := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"no ServiceAccount": {func(s *Spec) { s.Command = "bench" },
			"error: start job inference-bench-tiny-0a1b2c3d: there is no ServiceAccount " + namespace + "/inference-bench\n" +
				"hint: create it with the least rights it needs: `kubectl inference manifests rbac/bench | kubectl apply -n " + namespace + " -f -`\n" +
				"hint: or name another with --service-account\n"},
		"no Secret": {func(s *Spec) { s.SecretEnv[0].Secret = "gone" },
			"error: start job inference-sync-tiny-0a1b2c3d: there is no Secret " + namespace + "/gone\n" +
				"hint: create it: `kubectl create secret generic gone -n " + namespace + " --from-literal=HF_TOKEN=...`\n"},
		"no key": {func(s *Spec) { s.SecretEnv[0].Secret = "s3" },
			"error: start job inference-sync-tiny-0a1b2c3d: Secret " + namespace + "/s3 has no key HF_TOKEN\n" +
				"hint: it needs the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, HF_TOKEN; it has AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY\n"},
		"neither key": {func(s *Spec) { s.SecretEnv = []SecretEnv{{KeyAccess, "hub", KeyAccess}, {KeySecret, "hub", KeySecret}} },
			"error: start job inference-sync-tiny-0a1b2c3d: Secret " + namespace + "/hub has no key AWS_ACCESS_KEY_ID and no AWS_SECRET_ACCESS_KEY\n" +
				"hint: it needs the keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY; it has HF_TOKEN\n"},
		"no namespace": {func(s *Spec) { s.Namespace = "nowhere" },
			"error: start job inference-sync-tiny-0a1b2c3d: there is no namespace nowhere\n" +
				"hint: create it: `kubectl create namespace nowhere`\n" +
				"hint: or name another with -n\n"},
		"no ConfigMap": {func(s *Spec) { s.ConfigEnv = []ConfigEnv{{CAEnv, "gone", "ca.crt"}} },
			"error: start job inference-sync-tiny-0a1b2c3d: there is no ConfigMap " + namespace + "/gone\n" +
				"hint: create it: `kubectl create configmap gone -n " + namespace + " --from-file=ca.crt=FILE`\n"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := spec
			changed.SecretEnv = append([]SecretEnv{}, spec.SecretEnv...)
			test.change(&changed)
			_, err := jobs.Start(t.Context(), changed, true)
			checkFailure(t, err, failure.NotFound, test.want)
		})
	}
	list, err := jobs.Client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d Jobs were made, error %v", len(list.Items), err)
	}
}

func TestStartIsForbidden(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := prepare(t, jobs, namespace)
	guest, err := kubernetes.NewForConfig(cluster.Start(t).Config(apiserver.Guest))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Jobs{Client: guest, Poll: time.Millisecond}.Start(t.Context(), spec, true)
	if failure.KindOf(err) != failure.Denied {
		t.Errorf("error %v", err)
	}
}
