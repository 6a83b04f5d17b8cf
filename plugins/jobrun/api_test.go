package jobrun

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// epoch is when the scripted Jobs begin.
var epoch = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// moment is the cluster at one look: each read of the Job is the next moment,
// and the last one stays.
type moment struct {
	down      bool // the API server does not answer
	forbidden bool // not to this user
	gone      bool // the Job was deleted
	other     bool // another Job has its name
	condition *batchv1.JobCondition
	pods      []corev1.Pod
	logs      map[string]stream
}

// stream is what a pod has written up to a moment. A broken one ends without
// the end of the response, after cut bytes.
type stream struct {
	events    []record.Event
	cut       int
	broken    bool
	forbidden bool
}

// api is an API server that plays a script. It is not a real one because no
// kubelet stands behind that: nothing there has a log.
type api struct {
	t      *testing.T
	mutex  sync.Mutex
	script []moment
	now    int
}

// play starts the server and returns the Job to follow.
func play(t *testing.T, script ...moment) (Jobs, *batchv1.Job) {
	t.Helper()
	a := &api{t: t, script: script, now: -1}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return Jobs{Client: client, Poll: time.Microsecond}, job()
}

func job() *batchv1.Job {
	return &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "inference-sync-a", Namespace: "models", UID: "uid-1", Labels: map[string]string{LabelComponent: "sync"}},
		Spec:       batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(3600))}}
}

func (a *api) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	isJob := strings.HasPrefix(request.URL.Path, "/apis/batch/v1/")
	if isJob {
		a.now = min(a.now+1, len(a.script)-1)
	}
	now := a.script[max(a.now, 0)]
	status := func(code int, reason metav1.StatusReason, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code)})
	}
	switch {
	case now.down:
		status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is starting")
	case now.forbidden:
		status(http.StatusForbidden, metav1.StatusReasonForbidden, `jobs.batch "inference-sync-a" is forbidden: User "guest" cannot get resource "jobs"`)
	case isJob && now.gone:
		status(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	case isJob:
		found := job()
		if now.other {
			found.UID = "another"
		}
		if now.condition != nil {
			found.Status.Conditions = []batchv1.JobCondition{*now.condition}
		}
		a.send(w, found)
	case strings.HasSuffix(request.URL.Path, "/log"):
		pod := path.Base(path.Dir(request.URL.Path))
		log, ok := now.logs[pod]
		switch {
		case log.forbidden:
			status(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "`+pod+`" is forbidden: User "guest" cannot get resource "pods/log"`)
		case !ok:
			status(http.StatusNotFound, metav1.StatusReasonNotFound, "the log is gone")
		default:
			a.log(w, log, request.URL.Query().Get("sinceTime"))
		}
	default:
		if got, want := request.URL.Query().Get("labelSelector"), "batch.kubernetes.io/controller-uid=uid-1"; got != want {
			a.t.Errorf("pods are listed by %q, want %q", got, want)
		}
		a.send(w, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: now.pods})
	}
}

func (a *api) send(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		a.t.Error(err)
	}
}

// log sends the lines written at since or later, as a kubelet does.
func (a *api) log(w http.ResponseWriter, log stream, since string) {
	var text strings.Builder
	text.WriteString("a line that is no event\n")
	from, _ := time.Parse(time.RFC3339, since)
	for _, event := range log.events {
		if !event.Time.Before(from) {
			line, err := json.Marshal(event)
			if err != nil {
				a.t.Error(err)
			}
			text.Write(append(line, '\n'))
		}
	}
	sent := text.String()
	if log.broken {
		sent = sent[:len(sent)-log.cut]
	}
	fmt.Fprint(w, sent)
	if log.broken {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// at is an event of the i-th millisecond after the start.
func at(i int, name, message string) record.Event {
	return record.Event{Time: epoch.Add(time.Duration(i) * time.Millisecond), Level: record.Info, Name: name, Message: message}
}

func pod(name string, phase corev1.PodPhase, change ...func(*corev1.Pod)) corev1.Pod {
	made := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "models", UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch)},
		Status: corev1.PodStatus{Phase: phase}}
	for _, f := range change {
		f(&made)
	}
	return made
}

func created(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
	}
}

// waits gives the pod's container a reason to wait.
func waits(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, Image: "example.test/job:1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

// terminated ends the pod's container with its last words.
func terminated(code int32, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}}
	}
}

func words(t *testing.T, event record.Event) string {
	t.Helper()
	data, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func condition(kind batchv1.JobConditionType, reason, message string) *batchv1.JobCondition {
	return &batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}
