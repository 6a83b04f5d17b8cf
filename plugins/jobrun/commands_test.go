package jobrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// command runs `inference sync-model ARGS` and returns what it wrote.
func command(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	streams := term.New(nil, &out, &errs, nil)
	factory := kube.NewFactory("test", rest.NoWarnings{})
	root := &cobra.Command{Use: "kubectl-inference", SilenceErrors: true, SilenceUsage: true}
	factory.AddFlags(root.PersistentFlags())
	parent := &cobra.Command{Use: "sync-model"}
	parent.AddCommand(Commands(factory, streams, "sync", &output.Flags{}, func(_ context.Context, event record.Event) error {
		_, err := fmt.Fprintf(&out, "result %s\n", event.Result)
		return err
	})...)
	root.AddCommand(parent)
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"sync-model", "--kubeconfig", cluster.Start(t).Kubeconfig(apiserver.Admin)}, args...))
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestAttachAndCancel(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := prepare(t, jobs, namespace)
	started, err := jobs.Start(t.Context(), spec, false)
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, err := command(t, "list", "-n", namespace, "-o", "jsonpath={.items[*].name} {.items[*].state}")
	if err != nil || stdout != "tiny-0a1b2c3d Running" {
		t.Errorf("list says %q, error %v", stdout, err)
	}
	end(t, jobs, started.Job, batchv1.JobComplete)
	_, _, err = command(t, "attach", spec.Run, "-n", namespace)
	checkFailure(t, err, failure.NotFound, "error: show run tiny-0a1b2c3d: it is complete, but its log and its last words are gone\n")

	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{batchv1.ControllerUidLabel: string(started.Job.UID)}}, Spec: started.Job.Spec.Template.Spec}
	one, err = jobs.Client.CoreV1().Pods(namespace).Create(t.Context(), one, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: words(t, done(1))}}}}}
	if _, err := jobs.Client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), one, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	stdout, _, err = command(t, "attach", spec.Run, "-n", namespace)
	if err != nil || stdout != "result {\"kind\":\"SyncResult\"}\n" {
		t.Errorf("attach says %q, error %v", stdout, err)
	}

	_, stderr, err := command(t, "cancel", spec.Run, "-n", namespace)
	if want := "removed job/inference-sync-tiny-0a1b2c3d in namespace " + namespace + "\n"; err != nil || stderr != want {
		t.Errorf("cancel says %q, error %v", stderr, err)
	}
	for _, sub := range []string{"attach", "cancel"} {
		_, _, err = command(t, sub, spec.Run, "-n", namespace)
		checkFailure(t, err, failure.NotFound, "error: get run tiny-0a1b2c3d: there is none in namespace "+namespace+"\nhint: `kubectl inference sync-model list -A` lists the runs\n")
	}
	stdout, stderr, err = command(t, "list", "-n", namespace)
	if err != nil || stdout != "" || stderr != "no runs found\n" {
		t.Errorf("an empty list says %q and %q, error %v", stdout, stderr, err)
	}
	stdout, _, err = command(t, "list", "-n", namespace, "-o", "json")
	if err != nil || !strings.Contains(stdout, `"items": []`) {
		t.Errorf("an empty list as data is %s, error %v", stdout, err)
	}
}

// TestEnd: a run whose answer is "no" shows its result and is an error still.
func TestEnd(t *testing.T) {
	no := errors.New("no")
	event := done(1)
	for name, test := range map[string]struct {
		command string
		event   record.Event
		err     error
		shown   int
		want    string
	}{
		"good":             {"sync", event, nil, 1, ""},
		"the answer is no": {"bench", event, no, 1, "error: no\n"},
		"failed":           {"sync", record.Event{}, no, 0, "error: no\n"},
		"bench, log gone":  {"bench", record.Event{}, nil, 0, "error: show run r: it is complete, but its log and its last words are gone\nhint: `kubectl inference bench get r -n n` prints its report\n"},
	} {
		t.Run(name, func(t *testing.T) {
			shown := 0
			r := runs{show: func(context.Context, record.Event) error { shown++; return nil }}
			err := r.end(t.Context(), Spec{Command: test.command, Run: "r", Namespace: "n"}, test.event, test.err)
			text := ""
			if err != nil {
				text = failure.Text(err)
			}
			if diff := cmp.Diff(test.want, text); diff != "" || shown != test.shown {
				t.Errorf("shown %d times, error (-want +got):\n%s", shown, diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no run":         {[]string{"attach"}, "error: kubectl-inference sync-model attach: give the name of one run\nhint: `kubectl-inference sync-model list` lists the runs\n"},
		"two runs":       {[]string{"cancel", "a", "b"}, "error: kubectl-inference sync-model cancel: give the name of one run\nhint: `kubectl-inference sync-model list` lists the runs\n"},
		"list of one":    {[]string{"list", "a"}, "error: kubectl-inference sync-model list: takes no argument, got \"a\"\n"},
		"unknown format": {[]string{"list", "-o", "xml"}, "error: read --output: format \"xml\" is not known\nhint: use -o json, -o yaml, -o jsonpath='{.field}' or -o go-template='{{.field}}'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := command(t, test.args...)
			checkFailure(t, err, failure.Usage, test.want)
		})
	}
}

func TestRunList(t *testing.T) {
	run := func(namespace, name string, started int, conditions ...batchv1.JobCondition) batchv1.Job {
		return batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{LabelRun: name},
			CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(started) * time.Second))}, Status: batchv1.JobStatus{Conditions: conditions}}
	}
	ending := condition(batchv1.JobFailed, "", "")
	ending.LastTransitionTime = metav1.NewTime(epoch.Add(2 * time.Minute))
	other := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}
	list := runList([]batchv1.Job{run("b", "x", 0), run("a", "old", 0, *ending), run("a", "new", 60, other)}, epoch.Add(time.Hour))
	var text bytes.Buffer
	if err := list.table(true).Write(&text, ""); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "list.txt", text.String())
}

func TestFlags(t *testing.T) {
	streams, _ := buffers(ImageEnv + "=example.test/env:1")
	var flags Flags
	cmd := &cobra.Command{Use: "sync-model"}
	flags.AddFlags(cmd, streams)
	if err := cmd.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	var spec Spec
	flags.Apply(&spec)
	if err := flags.Validate(); err != nil || spec.Image != "example.test/env:1" || !flags.Wait {
		t.Errorf("flags %+v, error %v", flags, err)
	}
	if usage := cmd.Flags().Lookup("service-account").Usage; !strings.Contains(usage, "inference-sync)") {
		t.Errorf("the default account is not the one of the Job: %s", usage)
	}
	for name, test := range map[string]struct {
		flags Flags
		want  string
	}{
		"no image":         {Flags{}, "error: start job: this build of the plugin has no default image\nhint: give --image, or set KUBECTL_INFERENCE_IMAGE; with --local no image is needed\n"},
		"negative timeout": {Flags{Image: "a", Timeout: -time.Second}, "error: read --timeout: -1s is negative\n"},
	} {
		t.Run(name, func(t *testing.T) { checkFailure(t, test.flags.Validate(), failure.Usage, test.want) })
	}
}

func TestStoreFlags(t *testing.T) {
	for endpoint, valid := range map[string]bool{"": true, "http://s3:7070": true, "https://s3.example.com": true, "s3.example.com": false, "ftp://x": false, "http://": false, "http://[": false} {
		flags := StoreFlags{Endpoint: endpoint}
		if err := flags.Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	if env := (&StoreFlags{}).SecretEnv(); env != nil {
		t.Errorf("without a Secret there are %v", env)
	}
	want := []SecretEnv{{KeyAccess, "keys", KeyAccess}, {KeySecret, "keys", KeySecret}}
	if diff := cmp.Diff(want, (&StoreFlags{Secret: "keys"}).SecretEnv()); diff != "" {
		t.Error(diff)
	}
}
