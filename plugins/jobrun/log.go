package jobrun

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// maxEventBytes bounds one line of a job's log.
const maxEventBytes = 4 << 20

// stream shows the pod's events that were not shown yet. It returns when the
// stream ends, whether the pod ended or the connection was lost: run comes
// back here as long as the Job goes on.
func (f *follower) stream(ctx context.Context, pod *corev1.Pod) {
	options := &corev1.PodLogOptions{Container: container, Follow: true}
	if !f.last.IsZero() {
		// The server compares whole seconds.
		since := metav1.NewTime(f.last.Add(-time.Second))
		options.SinceTime = &since
	}
	logs, err := f.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		f.broken = 0
		if apierrors.IsForbidden(err) {
			f.tell(fmt.Sprintf("the log of pod %s cannot be shown: %v", pod.Name, err))
		}
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
		if isLast(event) {
			f.final = event
		}
		f.observer.Event(event)
	}
	f.broken++
	if err := scanner.Err(); err == nil || errors.Is(err, bufio.ErrTooLong) {
		f.broken = 0
	}
}

func isLast(event record.Event) bool {
	return event.Name == record.EventDone || event.Name == record.EventFailed
}

// lastWords reads the event in the pod's termination message. It is empty where
// there is none.
func lastWords(pod *corev1.Pod) record.Event {
	for _, status := range pod.Status.ContainerStatuses {
		var event record.Event
		if end := status.State.Terminated; status.Name == container && end != nil &&
			json.Unmarshal([]byte(end.Message), &event) == nil && isLast(event) {
			return event
		}
	}
	return record.Event{}
}

// death says how a pod ended that could not say it itself, or "".
func death(pod *corev1.Pod) string {
	var parts []string
	if pod.Status.Reason != "" {
		parts = append(parts, strings.TrimSpace("pod "+pod.Name+": "+pod.Status.Reason+" "+pod.Status.Message))
	}
	for _, status := range pod.Status.ContainerStatuses {
		if end := status.State.Terminated; end != nil && end.ExitCode != 0 {
			parts = append(parts, fmt.Sprintf("pod %s ended with exit code %d (%s)", pod.Name, end.ExitCode, end.Reason))
		}
	}
	return strings.Join(parts, "; ")
}
