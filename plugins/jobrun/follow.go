package jobrun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/podstate"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// pollInterval is how often the Job and its pods are read. Polling, because a
// watch has to survive expiry, proxies and restarts of the API server, and one
// read a second is nothing.
const pollInterval = time.Second

// outages is how many reads in a row may fail before following gives up.
const outages = 30

// maxEventBytes bounds one line of a job's log.
const maxEventBytes = 4 << 20

// Observer hears what a followed Job does, in order, from one goroutine at a
// time.
type Observer interface {
	// Event is one event of the job itself.
	Event(record.Event)
	// Waiting says why the pod does not run (yet), each reason once.
	Waiting(reason string)
}

// Follow watches the Job until it ends and returns the job's last event. The
// Job's condition decides over success: its log is only what is shown. When
// ctx ends the Job is left alone.
func Follow(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, observer Observer) (record.Event, error) {
	f := &follower{client: client, job: job, observer: observer}
	return f.run(ctx)
}

type follower struct {
	client   kubernetes.Interface
	job      *batchv1.Job
	observer Observer

	last    time.Time // of the newest event shown
	final   record.Event
	reason  string
	failing int
}

func (f *follower) run(ctx context.Context) (record.Event, error) {
	for {
		job, pod, err := f.read(ctx)
		if err != nil {
			return record.Event{}, err
		}
		if job != nil {
			if pod != nil {
				f.observe(ctx, pod)
			}
			if condition := ended(job); condition != nil {
				return f.finish(ctx, job, pod, condition)
			}
		}
		select {
		case <-ctx.Done():
			return record.Event{}, ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// read gets the Job and its newest pod. A short outage of the API server is not
// an error: job is nil then.
func (f *follower) read(ctx context.Context) (*batchv1.Job, *corev1.Pod, error) {
	job, err := f.client.BatchV1().Jobs(f.job.Namespace).Get(ctx, f.job.Name, metav1.GetOptions{})
	if err == nil && job.UID != f.job.UID {
		err = apierrors.NewNotFound(batchv1.Resource("jobs"), f.job.Name)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil, failure.New(failure.NotFound, "start it again", "follow job %s/%s: it was deleted", f.job.Namespace, f.job.Name)
	}
	var pods *corev1.PodList
	if err == nil {
		pods, err = f.client.CoreV1().Pods(f.job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/controller-uid=" + string(job.UID)})
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
	if len(pods.Items) == 0 {
		return job, nil, nil
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return job, &newest, nil
}

// observe reports why pod does not run, or shows its log until it ends.
func (f *follower) observe(ctx context.Context, pod *corev1.Pod) {
	if reason := podstate.Waiting(pod); reason != "" {
		if reason != f.reason {
			f.observer.Waiting(reason)
			f.reason = reason
		}
		return
	}
	f.reason = ""
	if pod.Status.Phase == corev1.PodPending {
		return
	}
	f.stream(ctx, pod)
}

// stream shows the pod's events that were not shown yet. It returns when the
// stream ends, whether the pod ended or the connection was lost: run comes
// back here as long as the Job goes on.
func (f *follower) stream(ctx context.Context, pod *corev1.Pod) {
	options := &corev1.PodLogOptions{Container: container, Follow: true}
	if !f.last.IsZero() {
		since := metav1.NewTime(f.last.Add(-time.Second))
		options.SinceTime = &since
	}
	logs, err := f.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return
	}
	defer logs.Close()
	scanner := bufio.NewScanner(logs)
	scanner.Buffer(make([]byte, 0, 64<<10), maxEventBytes)
	for scanner.Scan() {
		event, ok := record.ParseEvent(scanner.Bytes())
		if !ok || !event.Time.After(f.last) {
			continue
		}
		f.last = event.Time
		if event.Name == record.EventDone || event.Name == record.EventFailed {
			f.final = event
		}
		f.observer.Event(event)
	}
}

// finish turns the end of the Job into a result. The job's last words are in
// its termination message even when its log cannot be read any more.
func (f *follower) finish(ctx context.Context, job *batchv1.Job, pod *corev1.Pod, condition *batchv1.JobCondition) (record.Event, error) {
	if pod != nil {
		f.stream(ctx, pod)
	}
	final := f.final
	if final.Name == "" && pod != nil {
		final = lastWords(pod)
	}
	if condition.Type == batchv1.JobComplete {
		return final, nil
	}
	if final.Name == record.EventFailed && final.ExitCode != 0 {
		return final, failure.New(failure.Kind(final.ExitCode), final.Hint, "%w", errors.New(final.Message))
	}
	hint := fmt.Sprintf("`kubectl logs -n %s job/%s` shows its log", job.Namespace, job.Name)
	return final, failure.New(failure.Failed, hint, "run job %s/%s: %s", job.Namespace, job.Name, death(pod, condition))
}

// lastWords reads the event in the pod's termination message.
func lastWords(pod *corev1.Pod) record.Event {
	var event record.Event
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container && status.State.Terminated != nil {
			_ = json.Unmarshal([]byte(status.State.Terminated.Message), &event)
		}
	}
	return event
}

// death says how a job ended that could not say it itself.
func death(pod *corev1.Pod, condition *batchv1.JobCondition) string {
	var parts []string
	if pod != nil {
		if pod.Status.Reason != "" {
			parts = append(parts, "pod "+pod.Name+": "+pod.Status.Reason+" "+pod.Status.Message)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if t := status.State.Terminated; t != nil && t.ExitCode != 0 {
				parts = append(parts, fmt.Sprintf("pod %s ended with exit code %d (%s)", pod.Name, t.ExitCode, t.Reason))
			}
		}
	}
	if len(parts) == 0 {
		parts = append(parts, condition.Reason+": "+condition.Message)
	}
	return strings.Join(parts, "; ")
}
