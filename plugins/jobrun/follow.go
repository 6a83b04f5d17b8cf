package jobrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/podstate"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// outages is how many reads in a row may fail before following gives up.
const outages = 30

// breaks is how often the log of an ended Job is read again after the stream
// broke.
const breaks = 5

// Observer hears what a followed Job does, in order, from one goroutine at a
// time.
type Observer interface {
	// Event is one event of the job itself.
	Event(record.Event)
	// Waiting says why the pod does not run (yet), each reason once a pod.
	Waiting(reason string)
}

// Follow watches the Job until it ends and returns the job's last event, which
// is empty where neither the log nor the pod's last words can be read any more.
// The Job's condition decides over success: its log is only what is shown. When
// ctx ends the Job is left alone.
func (j Jobs) Follow(ctx context.Context, job *batchv1.Job, observer Observer) (record.Event, error) {
	if workersOf(job) > 1 {
		return j.followWorkers(ctx, job, observer)
	}
	f := &follower{Jobs: j, job: job, observer: observer}
	return f.run(ctx)
}

type follower struct {
	Jobs
	job      *batchv1.Job
	observer Observer
	// index is the worker whose pods are followed, "" where there is one only.
	index string

	failing int // reads that failed in a row
	broken  int // log streams that broke in a row
	// Of the pod that is followed; another pod has a clock and a story of its
	// own.
	pod   *corev1.Pod
	seen  map[string]bool // reasons told
	last  time.Time       // of the newest event shown
	final record.Event
}

func (f *follower) run(ctx context.Context) (record.Event, error) {
	for {
		job, pods, err := f.read(ctx)
		if err != nil {
			return record.Event{}, err
		}
		if job != nil {
			if len(pods) > 0 {
				f.observe(ctx, pods)
			}
			if condition := ended(job); condition != nil && (f.broken == 0 || f.broken > breaks) {
				return f.finish(ctx, condition)
			}
		}
		select {
		case <-ctx.Done():
			return record.Event{}, ctx.Err()
		case <-time.After(f.Poll):
		}
	}
}

// read gets the Job and its pods, the newest last. A short outage of the API
// server is not an error: job is nil then.
func (f *follower) read(ctx context.Context) (*batchv1.Job, []corev1.Pod, error) {
	job, err := f.Client.BatchV1().Jobs(f.job.Namespace).Get(ctx, f.job.Name, metav1.GetOptions{})
	if err == nil && job.UID != f.job.UID {
		err = apierrors.NewNotFound(batchv1.Resource("jobs"), f.job.Name)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil, failure.New(failure.NotFound, "start it again", "follow job %s/%s: it was deleted", f.job.Namespace, f.job.Name)
	}
	var pods *corev1.PodList
	if err == nil {
		pods, err = f.Client.CoreV1().Pods(f.job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.UID)})
	}
	if err != nil {
		f.failing++
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if f.failing > outages || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return nil, nil, kube.Explain(err, "follow job %s/%s", f.job.Namespace, f.job.Name)
		}
		return nil, nil, nil
	}
	f.failing = 0
	if f.index != "" {
		pods.Items = ofWorker(pods.Items, f.index)
	}
	slices.SortFunc(pods.Items, byAge)
	return job, pods.Items, nil
}

// byAge orders pods, the newest last. Creation times have whole seconds; of two
// pods of one second, the one that has not ended is the newer.
func byAge(a, b corev1.Pod) int {
	alive := func(pod corev1.Pod) int {
		if pod.DeletionTimestamp != nil || hasEnded(&pod) {
			return 0
		}
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(alive(a), alive(b)), strings.Compare(a.Name, b.Name))
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// observe reports why the newest pod does not run, or shows its log until it
// ends.
func (f *follower) observe(ctx context.Context, pods []corev1.Pod) {
	newest := &pods[len(pods)-1]
	if f.pod == nil || f.pod.UID != newest.UID {
		f.change(ctx, pods, newest)
	}
	f.pod = newest
	if reason := podstate.Waiting(newest); reason != "" {
		f.tell(reason)
		return
	}
	if newest.Status.Phase == corev1.PodRunning || hasEnded(newest) {
		f.stream(ctx, newest)
	}
}

// change goes over to another pod. What the one before still has to say comes
// first.
func (f *follower) change(ctx context.Context, pods []corev1.Pod, to *corev1.Pod) {
	if before := f.pod; before != nil {
		end := "it was removed"
		if i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.UID == before.UID }); i >= 0 {
			f.stream(ctx, &pods[i])
			end = cmp.Or(f.ending(&pods[i]).Message, death(&pods[i]), "it ended")
		}
		f.tell(fmt.Sprintf("pod %s is replaced by %s: %s", before.Name, to.Name, end))
	}
	f.seen, f.last, f.final = map[string]bool{}, time.Time{}, record.Event{}
}

func (f *follower) tell(reason string) {
	if !f.seen[reason] {
		f.seen[reason] = true
		f.observer.Waiting(reason)
	}
}

// ending returns the pod's last event, from its log or else from its
// termination message. It is empty where there is neither.
func (f *follower) ending(pod *corev1.Pod) record.Event {
	if f.final.Name != "" {
		return f.final
	}
	return lastWords(pod)
}

// finish turns the end of the Job into a result. The job's last words are in
// its termination message even when its log cannot be read any more.
func (f *follower) finish(ctx context.Context, condition *batchv1.JobCondition) (record.Event, error) {
	var final record.Event
	cause := ""
	if f.pod != nil {
		final, cause = f.ending(f.pod), death(f.pod)
		if final.Name == "" && ctx.Err() != nil {
			return record.Event{}, ctx.Err()
		}
	}
	if condition.Type == batchv1.JobComplete {
		return final, nil
	}
	if condition.Reason == batchv1.JobReasonDeadlineExceeded {
		// Its pods could say no more than that something stopped them.
		return final, f.late()
	}
	hint := fmt.Sprintf("`kubectl logs -n %s job/%s` shows its log", f.job.Namespace, f.job.Name)
	if final.Name == record.EventFailed && final.ExitCode != 0 {
		kind := failure.Kind(final.ExitCode)
		// Somebody stopped the pod, not this command.
		if kind == failure.Interrupted {
			kind = failure.Failed
			final.Hint = cmp.Or(final.Hint, hint)
		}
		return final, failure.New(kind, final.Hint, "%s", final.Message)
	}
	cause = cmp.Or(cause, condition.Reason+": "+condition.Message)
	return final, failure.New(failure.Failed, hint, "run job %s/%s: %s", f.job.Namespace, f.job.Name, cause)
}

// late is the end of a Job that had no more time.
func (f *follower) late() error {
	limit := ""
	if seconds := f.job.Spec.ActiveDeadlineSeconds; seconds != nil {
		limit = fmt.Sprintf(" of %v", time.Duration(*seconds)*time.Second)
	}
	hint := "start it again"
	if f.job.Labels[LabelComponent] == "sync" {
		hint = "run it again, with a longer --deadline: what was transferred stays and is not sent again"
	}
	return failure.New(failure.Failed, hint, "run job %s/%s: it was stopped at its deadline%s", f.job.Namespace, f.job.Name, limit)
}
