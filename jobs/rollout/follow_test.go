package rollout

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

func TestSettled(t *testing.T) {
	two := int32(2)
	for name, test := range map[string]struct {
		spec   *int32
		status appsv1.DeploymentStatus
		want   bool
	}{
		"all of them":                {&two, appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, true},
		"no number is one":           {nil, appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, true},
		"not looked at yet":          {&two, appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, false},
		"an old one goes":            {&two, appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3}, false},
		"one is not updated":         {&two, appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 2}, false},
		"one is not available":       {&two, appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}, false},
		"more than are wanted still": {nil, appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: test.spec}, Status: test.status}
			d.Generation = 5
			if got := settled(d); got != test.want {
				t.Errorf("settled is %v", got)
			}
		})
	}
}

// TestCurrent: the Deployment from before is settled for a moment after an
// InferenceService was changed.
func TestCurrent(t *testing.T) {
	for name, test := range map[string]struct {
		own, uri, image string
		want            bool
	}{
		"a Deployment of our own": {"web", "s3://models/b", "", true},
		"the same":                {"", "s3://models/a", "engine:1", true},
		"no image is named":       {"", "s3://models/a", "", true},
		"another model":           {"", "s3://models/b", "engine:1", false},
		"another image":           {"", "s3://models/a", "engine:2", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{plan: record.RolloutPlan{Deployment: test.own, Model: record.RolloutModel{URI: test.uri}}, image: test.image}
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kserve-container", Image: "engine:1", Args: []string{"--model", "s3://models/a"}}}
			if got := r.current(d); got != test.want {
				t.Errorf("current is %v", got)
			}
		})
	}
}

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "engine", Image: "example.test/engine:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
}

func crashLoop(restarts int32) corev1.PodStatus {
	status := waiting("CrashLoopBackOff", "back-off")
	status.ContainerStatuses[0].RestartCount = restarts
	status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no such model"}
	return status
}

func TestFollow(t *testing.T) {
	unschedulable := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}}
	for name, test := range map[string]struct {
		// before acts once the Deployment is there, then on the first progress.
		before, then func(w *world)
		// gives is a reason after which the time runs out.
		gives string
		kind  failure.Kind
		want  string
	}{
		"it settles": {nil, func(w *world) { w.settle(1) }, "", 0, ""},
		"a crash loop ends it": {nil, func(w *world) { w.pod("new", crashLoop(3)) }, "", failure.Failed,
			"error: roll out web: pod new crashed 3 times, last with exit code 1: no such model\nhint: `kubectl logs -n NAMESPACE new --previous` shows why\n"},
		"two crashes do not": {nil, func(w *world) { w.pod("new", crashLoop(2)); w.settle(1) }, "", 0, ""},
		"the pods that are replaced may crash": {func(w *world) {
			w.pod("old", crashLoop(9))
			w.started = time.Now().Add(time.Hour)
		}, func(w *world) { w.settle(1) }, "", 0, ""},
		"what changed nothing looks at all pods": {func(w *world) {
			w.pod("old", crashLoop(9))
			w.started, w.changed = time.Now().Add(time.Hour), false
		}, nil, "", failure.Failed,
			"error: roll out web: pod old crashed 9 times, last with exit code 1: no such model\nhint: `kubectl logs -n NAMESPACE old --previous` shows why\n"},
		"no GPU": {nil, func(w *world) { w.pod("new", unschedulable) }, "not scheduled", failure.Timeout,
			"error: roll out web: not ready after 30 s: pod new is not scheduled: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\nhint: give it longer with --rollout-timeout\n"},
		"no image": {nil, func(w *world) { w.pod("new", waiting("ImagePullBackOff", "not found")) }, "cannot pull", failure.Timeout,
			"error: roll out web: not ready after 30 s: pod new cannot pull image example.test/engine:1: not found\nhint: give it longer with --rollout-timeout\n"},
		"scaled to zero": {nil, func(w *world) {
			deployments := w.deps.Client.AppsV1().Deployments(w.plan.Namespace)
			if _, err := deployments.Patch(w.t.Context(), "web", "application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`), patchOptions); err != nil {
				w.t.Fatal(err)
			}
			w.settle(0)
		}, "", failure.Differs, "error: roll out web: Deployment web is scaled to 0 replicas, so nothing starts\nhint: scale it up, or set minReplicaCount of its ScaledObject to 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, good)
			if err := w.apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if test.before != nil {
				test.before(w)
			}
			ctx := newDeadline(t.Context())
			once := true
			w.on = func(name, message string) {
				if name == record.EventProgress && once && test.then != nil {
					once = false
					test.then(w)
				}
				if test.gives != "" && strings.Contains(message, test.gives) {
					ctx.pass()
				}
			}
			_, err := w.follow(ctx)
			checkFailure(t, err, test.kind, strings.ReplaceAll(test.want, "NAMESPACE", w.plan.Namespace))
		})
	}
}

// deadline is a context whose time runs out when the test says so.
type deadline struct {
	context.Context
	done chan struct{}
}

func newDeadline(parent context.Context) *deadline { return &deadline{parent, make(chan struct{})} }

func (d *deadline) Done() <-chan struct{} { return d.done }
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
func (d *deadline) pass() {
	select {
	case <-d.done:
	default:
		close(d.done)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestFollowOutlivesAnOutage: pods load for a quarter of an hour, and the API
// server may restart in it.
func TestFollowOutlivesAnOutage(t *testing.T) {
	w := newWorld(t, good)
	if err := w.apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.settle(1)
	config := shared.Start(t).Config(apiserver.Admin)
	calls := 0
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if calls++; calls < 4 {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(request)
		})
	})
	var err error
	if w.deps.Client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if _, err := w.follow(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(w.events, func(line string) bool { return strings.Contains(line, "connection refused") }) {
		t.Errorf("the outage is not told: %q", w.events)
	}
}

func TestFollowIsForbidden(t *testing.T) {
	w := newWorld(t, good)
	var err error
	if w.deps.Client, err = kubernetes.NewForConfig(shared.Start(t).Config(apiserver.Guest)); err != nil {
		t.Fatal(err)
	}
	_, err = w.follow(t.Context())
	if failure.KindOf(err) != failure.Denied || !strings.Contains(failure.HintOf(err), "manifests rbac/rollout") {
		t.Errorf("error %v", err)
	}
}

func TestFollowIsStopped(t *testing.T) {
	w := newWorld(t, good)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := w.follow(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestFollowByLabels: where a controller makes the Deployment, its name is not
// known.
func TestFollowByLabels(t *testing.T) {
	w := newWorld(t, good)
	w.plan.Deployment, w.plan.Workload = "", map[string]string{"component": "predictor"}
	if d, _, err := w.look(t.Context()); d != nil || err != nil {
		t.Errorf("deployment %v, error %v", d, err)
	}
	if err := w.apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, _, _ := w.look(t.Context()); d != nil {
		t.Error("a Deployment without the labels is found")
	}
	if _, err := w.deps.Client.AppsV1().Deployments(w.plan.Namespace).Patch(t.Context(), "web", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"component":"predictor"}}}`), patchOptions); err != nil {
		t.Fatal(err)
	}
	if d, _, err := w.look(t.Context()); d == nil || err != nil {
		t.Errorf("deployment %v, error %v", d, err)
	}
}
