package jobrun

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// heard notes what an Observer hears, one line each.
type heard struct {
	lines []string
	on    func(line string)
}

func (h *heard) Event(event record.Event) { h.note(event.Name + " " + event.Message) }
func (h *heard) Waiting(reason string)    { h.note("waiting " + reason) }
func (h *heard) note(line string) {
	h.lines = append(h.lines, line)
	if h.on != nil {
		h.on(line)
	}
}

func done(i int) record.Event {
	event := at(i, record.EventDone, "done")
	event.Result = json.RawMessage(`{"kind":"SyncResult"}`)
	return event
}

func failed(i, code int, hint, message string) record.Event {
	event := at(i, record.EventFailed, message)
	event.Level, event.ExitCode, event.Hint = record.Problem, code, hint
	return event
}

func TestFollow(t *testing.T) {
	plan, half, all := at(1, "plan", "two files"), at(2, record.EventProgress, "half"), at(3, record.EventProgress, "all")
	complete := condition(batchv1.JobComplete, "", "")
	running, succeeded := pod("a", corev1.PodRunning), pod("a", corev1.PodSucceeded, terminated(0, "Completed", words(t, done(4))))
	logs := func(events ...record.Event) map[string]stream { return map[string]stream{"a": {events: events}} }
	whole := logs(plan, half, all, done(4))
	broken := func(cut int, events ...record.Event) map[string]stream {
		return map[string]stream{"a": {events: events, broken: true, cut: cut}}
	}
	// The second pod's node has a clock that is behind.
	early := func(event record.Event) record.Event { event.Time = event.Time.Add(-time.Hour); return event }
	second := pod("b", corev1.PodRunning, created(30))
	for name, test := range map[string]struct {
		script []moment
		want   []string
		result string
	}{
		"from the first look to the end": {
			[]moment{{}, {pods: []corev1.Pod{pod("a", corev1.PodPending)}}, {pods: []corev1.Pod{running}, logs: logs(plan, half)}, {pods: []corev1.Pod{running}, logs: whole}, {pods: []corev1.Pod{succeeded}, logs: whole, condition: complete}},
			[]string{"plan two files", "progress half", "progress all", "done done"}, "SyncResult",
		},
		"attached when it is over": {
			[]moment{{pods: []corev1.Pod{succeeded}, logs: whole, condition: complete}},
			[]string{"plan two files", "progress half", "progress all", "done done"}, "SyncResult",
		},
		"each reason to wait once": {
			[]moment{
				{pods: []corev1.Pod{pod("a", corev1.PodPending, waits("ContainerCreating", ""))}},
				{pods: []corev1.Pod{pod("a", corev1.PodPending, waits("ErrImagePull", "no such host"))}},
				{pods: []corev1.Pod{pod("a", corev1.PodPending, waits("ImagePullBackOff", "Back-off pulling image"))}},
				{pods: []corev1.Pod{pod("a", corev1.PodPending, waits("ErrImagePull", "no such host"))}},
				{pods: []corev1.Pod{pod("a", corev1.PodPending, waits("ImagePullBackOff", "Back-off pulling image"))}},
				{pods: []corev1.Pod{succeeded}, logs: logs(done(4)), condition: complete},
			},
			[]string{"waiting pod a cannot pull image example.test/job:1: no such host", "waiting pod a cannot pull image example.test/job:1: Back-off pulling image", "done done"}, "SyncResult",
		},
		"a stream that breaks in a line": {
			[]moment{{pods: []corev1.Pod{running}, logs: broken(20, plan, half)}, {pods: []corev1.Pod{running}, logs: broken(1, plan, half, all)}, {pods: []corev1.Pod{succeeded}, logs: whole, condition: complete}},
			[]string{"plan two files", "progress half", "progress all", "done done"}, "SyncResult",
		},
		"a stream that breaks when the Job has ended": {
			[]moment{{pods: []corev1.Pod{succeeded}, logs: broken(20, plan, half, all, done(4)), condition: complete}, {pods: []corev1.Pod{succeeded}, logs: broken(60, plan, half, all, done(4)), condition: complete}, {pods: []corev1.Pod{succeeded}, logs: whole, condition: complete}},
			[]string{"plan two files", "progress half", "progress all", "done done"}, "SyncResult",
		},
		"a stream that always breaks": {
			[]moment{{pods: []corev1.Pod{succeeded}, logs: broken(20, plan, done(4)), condition: complete}},
			[]string{"plan two files"}, "SyncResult",
		},
		"an outage": {
			[]moment{{pods: []corev1.Pod{running}, logs: logs(plan)}, {down: true}, {down: true}, {down: true}, {pods: []corev1.Pod{succeeded}, logs: whole, condition: complete}},
			[]string{"plan two files", "progress half", "progress all", "done done"}, "SyncResult",
		},
		"the pod is replaced": {
			[]moment{
				{pods: []corev1.Pod{running}, logs: logs(plan)},
				{pods: []corev1.Pod{second, pod("a", corev1.PodFailed, terminated(1, "Error", ""))},
					logs: map[string]stream{"a": {events: []record.Event{plan, half, failed(3, 1, "", "the Hub does not answer")}}, "b": {events: []record.Event{early(plan)}}}},
				{pods: []corev1.Pod{second}, logs: map[string]stream{"b": {events: []record.Event{early(plan), early(all), early(done(9))}}}, condition: complete},
			},
			[]string{"plan two files", "progress half", "failed the Hub does not answer", "waiting pod a is replaced by b: the Hub does not answer", "plan two files", "progress all", "done done"}, "SyncResult",
		},
		"the pod is killed and replaced": {
			[]moment{
				{pods: []corev1.Pod{running}, logs: logs(plan)},
				{pods: []corev1.Pod{pod("a", corev1.PodFailed, terminated(137, "OOMKilled", "")), second}, logs: map[string]stream{"b": {}}},
				{pods: []corev1.Pod{second}, logs: map[string]stream{"b": {events: []record.Event{done(9)}}}, condition: complete},
			},
			[]string{"plan two files", "waiting pod a is replaced by b: pod a ended with exit code 137 (OOMKilled)", "done done"}, "SyncResult",
		},
		"the pod is removed and replaced within a second": {
			[]moment{
				{pods: []corev1.Pod{running}, logs: logs(plan)},
				{pods: []corev1.Pod{pod("Z", corev1.PodRunning)}, logs: map[string]stream{"Z": {events: []record.Event{done(9)}}}, condition: complete},
			},
			[]string{"plan two files", "waiting pod a is replaced by Z: it was removed", "done done"}, "SyncResult",
		},
		"two pods of one second": {
			[]moment{{pods: []corev1.Pod{pod("z", corev1.PodFailed), running}, logs: whole, condition: complete}},
			[]string{"plan two files", "progress half", "progress all", "done done"}, "SyncResult",
		},
		"the log is gone": {
			[]moment{{pods: []corev1.Pod{succeeded}, condition: complete}}, nil, "SyncResult",
		},
		"log and pod are gone": {[]moment{{condition: complete}}, nil, ""},
		"last words of another program": {
			[]moment{{pods: []corev1.Pod{pod("a", corev1.PodSucceeded, terminated(0, "Completed", `{"message": "bye"}`))}, condition: complete}}, nil, "",
		},
		"the log is not for this user": {
			[]moment{{pods: []corev1.Pod{running}, logs: map[string]stream{"a": {forbidden: true}}}, {pods: []corev1.Pod{running}, logs: map[string]stream{"a": {forbidden: true}}}, {pods: []corev1.Pod{succeeded}, logs: map[string]stream{"a": {forbidden: true}}, condition: complete}},
			[]string{`waiting the log of pod a cannot be shown: pods "a" is forbidden: User "guest" cannot get resource "pods/log"`}, "SyncResult",
		},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, job := play(t, test.script...)
			var observer heard
			event, err := jobs.Follow(t.Context(), job, &observer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, observer.lines); diff != "" {
				t.Errorf("heard (-want +got):\n%s", diff)
			}
			var result record.TypeMeta
			if len(event.Result) > 0 {
				if err := json.Unmarshal(event.Result, &result); err != nil {
					t.Fatal(err)
				}
			}
			if result.Kind != test.result {
				t.Errorf("the result is %q, want %q", result.Kind, test.result)
			}
		})
	}
}

func TestFollowFails(t *testing.T) {
	const lateHint = "hint: run it again, with a longer --deadline: what was transferred stays and is not sent again\n"
	const logHint = "hint: `kubectl logs -n models job/inference-sync-a` shows its log\n"
	limit := condition(batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	ending := func(event record.Event, code int32) []moment {
		return []moment{{pods: []corev1.Pod{pod("a", corev1.PodFailed, terminated(code, "Error", ""))}, logs: map[string]stream{"a": {events: []record.Event{event}}}, condition: limit}}
	}
	differs := failed(1, 3, "", "one objective is missed")
	differs.Result = json.RawMessage(`{}`)
	evicted := pod("a", corev1.PodFailed)
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "The node was low on resource: memory."
	for name, test := range map[string]struct {
		script []moment
		kind   failure.Kind
		want   string
	}{
		"by its own word":           {ending(failed(1, 4, "add s3:PutObject", "put object: access denied"), 4), failure.Denied, "error: put object: access denied\nhint: add s3:PutObject\n"},
		"with an answer of no":      {ending(differs, 3), failure.Differs, "error: one objective is missed\n"},
		"it was too slow":           {ending(failed(1, 124, "", "not ready"), 124), failure.Timeout, "error: not ready\n"},
		"somebody stopped it":       {ending(failed(1, 130, "", "stopped by a signal"), 130), failure.Failed, "error: stopped by a signal\n" + logHint},
		"by its last words":         {[]moment{{pods: []corev1.Pod{pod("a", corev1.PodFailed, terminated(5, "Error", words(t, failed(1, 5, "", "no such bucket"))))}, condition: limit}}, failure.NotFound, "error: no such bucket\n"},
		"killed":                    {[]moment{{pods: []corev1.Pod{pod("a", corev1.PodFailed, terminated(137, "OOMKilled", ""))}, condition: limit}}, failure.Failed, "error: run job models/inference-sync-a: pod a ended with exit code 137 (OOMKilled)\n" + logHint},
		"evicted":                   {[]moment{{pods: []corev1.Pod{evicted}, condition: limit}}, failure.Failed, "error: run job models/inference-sync-a: pod a: Evicted The node was low on resource: memory.\n" + logHint},
		"with no pod left":          {[]moment{{condition: condition(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")}}, failure.Failed, "error: run job models/inference-sync-a: it was stopped at its deadline of 1h0m0s\n" + lateHint},
		"past its deadline":         {[]moment{{pods: []corev1.Pod{pod("a", corev1.PodFailed, terminated(130, "Error", words(t, failed(1, 130, "", "stopped by a signal"))))}, condition: condition(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")}}, failure.Failed, "error: run job models/inference-sync-a: it was stopped at its deadline of 1h0m0s\n" + lateHint},
		"deleted":                   {[]moment{{}, {gone: true}}, failure.NotFound, "error: follow job models/inference-sync-a: it was deleted\nhint: start it again\n"},
		"deleted and started again": {[]moment{{}, {other: true}}, failure.NotFound, "error: follow job models/inference-sync-a: it was deleted\nhint: start it again\n"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, job := play(t, test.script...)
			event, err := jobs.Follow(t.Context(), job, &heard{})
			checkFailure(t, err, test.kind, test.want)
			if test.kind == failure.Differs && len(event.Result) == 0 {
				t.Error("the result is lost")
			}
		})
	}
}

func TestFollowGivesUp(t *testing.T) {
	for name, test := range map[string]struct {
		moment moment
		kind   failure.Kind
	}{
		"after a long outage":      {moment{down: true}, failure.Unreachable},
		"at once where it may not": {moment{forbidden: true}, failure.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, job := play(t, test.moment)
			_, err := jobs.Follow(t.Context(), job, &heard{})
			if failure.KindOf(err) != test.kind {
				t.Errorf("error %v of kind %d, want %d", err, failure.KindOf(err), test.kind)
			}
		})
	}
}

// TestFollowLeaves: leaving does not touch the Job, and says how to come back.
func TestFollowLeaves(t *testing.T) {
	spec := Spec{Command: "sync", Run: "a", Namespace: "models"}
	const hints = "hint: follow it again: kubectl inference sync-model attach a -n models\nhint: stop it: kubectl inference sync-model cancel a -n models\n"
	script := []moment{{pods: []corev1.Pod{pod("a", corev1.PodRunning)}, logs: map[string]stream{"a": {events: []record.Event{at(1, "plan", "two files")}}}}}
	t.Run("by Ctrl-C", func(t *testing.T) {
		jobs, job := play(t, script...)
		ctx, stop := context.WithCancel(t.Context())
		_, err := jobs.Follow(ctx, job, &heard{on: func(string) { stop() }})
		checkFailure(t, leave(err, spec), failure.Interrupted, "error: detached: job/inference-sync-a keeps running\n"+hints)
	})
	t.Run("by --timeout", func(t *testing.T) {
		jobs, job := play(t, script...)
		ctx, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer stop()
		_, err := jobs.Follow(ctx, job, &heard{})
		checkFailure(t, leave(err, spec), failure.Timeout, "error: stopped waiting: job/inference-sync-a keeps running\n"+hints)
	})
	t.Run("not at all", func(t *testing.T) {
		checkFailure(t, leave(nil, spec), 0, "")
		checkFailure(t, leave(failure.New(failure.Denied, "", "no"), spec), failure.Denied, "error: no\n")
	})
}

// TestFollowRealObjects follows objects that a real API server has accepted.
func TestFollowRealObjects(t *testing.T) {
	jobs, namespace := realJobs(t)
	spec := prepare(t, jobs, namespace)
	started, err := jobs.Start(t.Context(), spec, false)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{batchv1.ControllerUidLabel: string(started.Job.UID)}
	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: labels}, Spec: started.Job.Spec.Template.Spec}
	one, err = jobs.Client.CoreV1().Pods(namespace).Create(t.Context(), one, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}
	one, err = jobs.Client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), one, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	observer := &heard{on: func(string) {
		one.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: container, Image: "example.test/job:1",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: words(t, done(1))}}}}}
		if _, err := jobs.Client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), one, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		end(t, jobs, started.Job, batchv1.JobComplete)
	}}
	event, err := jobs.Follow(t.Context(), started.Job, observer)
	if err != nil || event.Name != record.EventDone {
		t.Errorf("event %+v, error %v", event, err)
	}
	if want := []string{"waiting pod one is not scheduled: 0/1 nodes are available"}; !slices.Equal(observer.lines, want) {
		t.Errorf("heard %q, want %q", observer.lines, want)
	}
}
