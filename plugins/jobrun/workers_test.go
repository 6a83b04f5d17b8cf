package jobrun

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// indexed is a Job of so many workers.
func indexed(job *batchv1.Job, workers int32) *batchv1.Job {
	job.Spec.CompletionMode, job.Spec.Completions = new(batchv1.IndexedCompletion), &workers
	return job
}

// ofIndex gives a pod to a worker.
func ofIndex(pod corev1.Pod, index int) corev1.Pod {
	pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)}
	return pod
}

// last is the newest line that begins so.
func (h *heard) last(prefix string) string {
	for i := len(h.lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(h.lines[i], prefix) {
			return h.lines[i]
		}
	}
	return ""
}

func partly(i int, done, total float64) record.Event {
	event := at(i, record.EventProgress, "part")
	event.Done, event.Total, event.Unit = &done, &total, "bytes"
	event.Fields = map[string]any{"bytes_per_second": float64(1 << 20), "eta_seconds": 1.0, "files_done": 1.0, "files": 2.0}
	return event
}

// TestFollowWorkers: the workers' progress is one line, what all say is said
// once, and the result is the first one's.
func TestFollowWorkers(t *testing.T) {
	plan := at(1, record.EventPlan, "six files")
	second := done(5)
	second.Result = []byte(`{"kind":"Other"}`)
	pods := []corev1.Pod{
		ofIndex(pod("a", corev1.PodSucceeded, terminated(0, "Completed", words(t, done(5)))), 0),
		ofIndex(pod("b", corev1.PodSucceeded, terminated(0, "Completed", words(t, second))), 1),
	}
	jobs, job := play(t, moment{pods: pods, condition: condition(batchv1.JobComplete, "", ""), logs: map[string]stream{
		"a": {events: []record.Event{plan, partly(2, 1<<20, 3<<20), done(5)}},
		"b": {events: []record.Event{plan, partly(3, 2<<20, 3<<20), second}},
	}})
	var observer heard
	event, err := jobs.Follow(t.Context(), indexed(job, 2), &observer)
	if err != nil || string(event.Result) != `{"kind":"SyncResult"}` {
		t.Errorf("event %+v, error %v", event, err)
	}
	plans := 0
	for _, line := range observer.lines {
		if line == "plan six files" {
			plans++
		}
	}
	if plans != 1 {
		t.Errorf("the plan is told %d times: %q", plans, observer.lines)
	}
	if diff := cmp.Diff("progress 3.0 MiB of 6.0 MiB, 2 files, 2 workers, 2.0 MiB/s, 2s left", observer.last("progress")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWorkersForetell: no end is foretold while a worker cannot foretell its own.
func TestWorkersForetell(t *testing.T) {
	early, ended := partly(3, 1<<20, 3<<20), partly(3, 3<<20, 3<<20)
	delete(early.Fields, "eta_seconds")
	delete(ended.Fields, "eta_seconds")
	for name, test := range map[string]struct {
		events []record.Event
		want   string
	}{
		"one has not spoken": {[]record.Event{partly(2, 1<<20, 3<<20)}, "1.0 MiB of 3.0 MiB, 1 files, 2 workers, 1.0 MiB/s"},
		"one has begun":      {[]record.Event{partly(2, 1<<20, 3<<20), early}, "2.0 MiB of 6.0 MiB, 2 files, 2 workers, 2.0 MiB/s"},
		"one has ended":      {[]record.Event{partly(2, 1<<20, 3<<20), ended}, "4.0 MiB of 6.0 MiB, 2 files, 2 workers, 2.0 MiB/s, 1s left"},
	} {
		var observer heard
		m := &merge{observer: &observer, parts: make([]record.Event, 2), told: make(map[string]bool)}
		for i, event := range test.events {
			part{m, i}.Event(event)
		}
		if got := observer.last("progress"); got != "progress "+test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestFollowWorkersFails: of several workers that ended, the one that failed by
// itself says why; the others were stopped for it.
func TestFollowWorkersFails(t *testing.T) {
	denied, stopped := failed(4, 4, "add s3:PutObject", "put object: access denied"), failed(5, 130, "", "stopped by a signal")
	pods := []corev1.Pod{
		ofIndex(pod("a", corev1.PodFailed, terminated(130, "Error", words(t, stopped))), 0),
		ofIndex(pod("b", corev1.PodFailed, terminated(4, "Error", words(t, denied))), 1),
	}
	jobs, job := play(t, moment{pods: pods, condition: condition(batchv1.JobFailed, "PodFailurePolicy", "a pod failed")})
	_, err := jobs.Follow(t.Context(), indexed(job, 2), &heard{})
	checkFailure(t, err, failure.Denied, "error: put object: access denied\nhint: add s3:PutObject\n")
}
