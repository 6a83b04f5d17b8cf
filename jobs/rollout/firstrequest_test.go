package rollout

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

var patchOptions metav1.PatchOptions

// ask sends the first request to an engine that plays handler.
func ask(t *testing.T, ctx context.Context, served string, handler http.HandlerFunc) (answer, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	r := &run{plan: record.RolloutPlan{URL: server.URL, ServedModel: served}, deps: Deps{HTTP: server.Client(), Now: time.Now, Poll: time.Microsecond, Emit: func(record.Event) {}}}
	found, err := r.firstRequest(ctx)
	if err != nil {
		err = fmt.Errorf("%w", &failure.Error{Kind: failure.KindOf(err), Hint: failure.HintOf(err), Err: fmt.Errorf("%s", strings.ReplaceAll(err.Error(), server.URL, "URL"))})
	}
	return found, err
}

// after serves first n times, and then well.
func after(n int, first http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		if n--; n >= 0 {
			first(w, request)
			return
		}
		good(w, request)
	}
}

func status(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, text) }
}

func TestFirstRequest(t *testing.T) {
	for name, test := range map[string]struct {
		served  string
		handler http.HandlerFunc
		model   string
		kind    failure.Kind
		want    string
	}{
		"by name":                  {"web", good, "web", 0, ""},
		"by the server's own name": {"", good, "base", 0, ""},
		"the Service is not ready": {"web", after(3, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), "web", 0, ""},
		"the engine starts":        {"web", after(3, status(503, "")), "web", 0, ""},
		"it is busy":               {"web", after(2, status(429, "")), "web", 0, ""},
		"half an answer":           {"web", after(1, status(200, `{"data":`)), "web", 0, ""},
		"another model":            {"other", good, "", failure.Differs, "error: ask URL for its models: it serves [\"base\" \"web\"], not \"other\"\nhint: check --served-model-name\n"},
		"a refusal":                {"web", status(401, strings.Repeat("x", 300)), "", failure.Failed, "error: ask URL/v1/models: status 401: " + strings.Repeat("x", 200) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := ask(t, t.Context(), test.served, test.handler)
			checkFailure(t, err, test.kind, test.want)
			if found.model != test.model {
				t.Errorf("served by %q, want %q", found.model, test.model)
			}
		})
	}
}

func TestFirstRequestTakesTooLong(t *testing.T) {
	ctx := newDeadline(t.Context())
	_, err := ask(t, ctx, "web", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); ctx.pass() })
	if failure.KindOf(err) != failure.Timeout || !strings.HasPrefix(err.Error(), "send the first request to URL: ") {
		t.Errorf("error %v", err)
	}
}

func TestReadingTheModelsHasNoBody(t *testing.T) {
	_, err := ask(t, t.Context(), "web", func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet && (request.ContentLength != 0 || request.Header.Get("Content-Type") != "") {
			t.Errorf("%s has %d bytes of %q", request.URL.Path, request.ContentLength, request.Header.Get("Content-Type"))
		}
		good(w, request)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStarts(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 600e6, time.UTC)
	second := func(i int) metav1.Time {
		return metav1.NewTime(began.Truncate(time.Second).Add(time.Duration(i) * time.Second))
	}
	pod := func(name string, created, scheduled, started, ready int) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: second(created)},
			Spec: corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{Name: "engine", Image: "engine:1"}, {Name: "agent"}}},
			Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: second(scheduled)}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: second(ready)}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(1)}}},
					{Name: "engine", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: second(started)}}}},
			}}
	}
	number := func(v float64) *float64 { return &v }
	first := record.ReplicaStart{Pod: "a", Node: "gpu-1", Image: "engine:1", Created: second(0).UTC(),
		QueuedSeconds: number(3), PreparedSeconds: number(8), LoadedSeconds: number(60), TotalSeconds: 71}
	alone := first
	alone.FirstTokenSeconds, alone.TotalSeconds = number(1.5), 72.5
	skewed := record.ReplicaStart{Pod: "s", Node: "gpu-1", Image: "engine:1", Created: second(5).UTC(),
		QueuedSeconds: number(0), PreparedSeconds: number(5), LoadedSeconds: number(0), TotalSeconds: 5}
	unready := pod("u", 0, 1, 2, 3)
	unready.Status.Conditions[1].Status = corev1.ConditionFalse
	notRunning := pod("n", 0, 1, 2, 10)
	notRunning.Status.ContainerStatuses = nil
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want []record.ReplicaStart
	}{
		"none":                 {nil, []record.ReplicaStart{}},
		"one, which answered":  {[]corev1.Pod{pod("a", 0, 3, 11, 71)}, []record.ReplicaStart{alone}},
		"one of two is new":    {[]corev1.Pod{pod("old", -1, 0, 0, 0), pod("a", 0, 3, 11, 71)}, []record.ReplicaStart{first}},
		"clocks differ":        {[]corev1.Pod{pod("old", -1, 0, 0, 0), pod("s", 5, 4, 10, 9)}, []record.ReplicaStart{skewed}},
		"one is not ready":     {[]corev1.Pod{unready, pod("old", -1, 0, 0, 0)}, []record.ReplicaStart{}},
		"a phase is not known": {[]corev1.Pod{notRunning, pod("old", -1, 0, 0, 0)}, []record.ReplicaStart{{Pod: "n", Node: "gpu-1", Image: "engine:1", Created: second(0).UTC(), QueuedSeconds: number(1), LoadedSeconds: number(9), TotalSeconds: 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{started: began}
			got := r.starts(test.pods, second(72).Add(500*time.Millisecond))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, start := range got {
				sum := 0.0
				for _, phase := range []*float64{start.QueuedSeconds, start.PreparedSeconds, start.LoadedSeconds, start.FirstTokenSeconds} {
					if phase != nil {
						sum += *phase
					}
				}
				if sum != start.TotalSeconds {
					t.Errorf("the phases of %s add up to %v, not %v", start.Pod, sum, start.TotalSeconds)
				}
			}
		})
	}
}
