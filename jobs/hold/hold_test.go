package hold

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/cluster"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/manifests"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: scaledobjects.keda.sh}
spec:
  group: keda.sh
  scope: Namespaced
  names: {kind: ScaledObject, listKind: ScaledObjectList, plural: scaledobjects, singular: scaledobject}
  versions:
    - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const (
	pausedReplicas = "autoscaling.keda.sh/paused-replicas"
	marker         = "kubectl-inference.io/hold"
)

var scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}

// place is a namespace with a ScaledObject, and the Jobs of a hold and of the
// run that it is for.
type place struct {
	admin   kubernetes.Interface
	objects dynamic.ResourceInterface
	plan    record.HoldPlan
	deps    Deps
	mutex   sync.Mutex
	events  []record.Event
}

func (p *place) told(name string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	n := 0
	for _, event := range p.events {
		if event.Name == name {
			n++
		}
	}
	return n
}

func newPlace(t *testing.T, config func(*rest.Config) *rest.Config) *place {
	t.Helper()
	s := server.Start(t)
	s.Kubectl(t, crd, "apply", "-f", "-")
	s.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/scaledobjects.keda.sh")
	admin := kubernetes.NewForConfigOrDie(s.Config(apiserver.Admin))
	namespace, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hold-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := namespace.Name
	p := &place{admin: admin, objects: dynamic.NewForConfigOrDie(s.Config(apiserver.Admin)).Resource(scaledObjects).Namespace(name)}
	s.Kubectl(t, `{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{"name":"web","annotations":{"mine":"stays"}},"spec":{"maxReplicaCount":6}}`, "apply", "-n", name, "-f", "-")
	own, err := admin.BatchV1().Jobs(name).Create(t.Context(), job("inference-hold-r"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := s.Config(apiserver.Admin)
	if config != nil {
		used = config(rest.CopyConfig(used))
		used.Impersonate.UserName = strings.ReplaceAll(used.Impersonate.UserName, "NAMESPACE", name)
	}
	p.plan = record.HoldPlan{
		TypeMeta: record.Meta(record.KindHoldPlan), Run: "r", Job: "inference-bench-r", Replicas: 1, StartSeconds: 60, Seconds: 60,
		Object: record.HoldObject{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Resource: "scaledobjects", Namespace: name, Name: "web"},
		Changes: []record.HoldChange{
			{Path: []string{"metadata", "annotations", pausedReplicas}, Held: "1"},
			{Path: []string{"metadata", "annotations", marker}, Held: "r"},
		},
	}
	p.deps = Deps{
		Objects: dynamic.NewForConfigOrDie(used), Client: kubernetes.NewForConfigOrDie(used),
		Pod:  cluster.Pod{Namespace: name, Name: "p", Job: own.Name, JobUID: string(own.UID)},
		Poll: 20 * time.Millisecond, Now: time.Now,
		Emit: func(e record.Event) { p.mutex.Lock(); defer p.mutex.Unlock(); p.events = append(p.events, e) },
	}
	return p
}

func job(name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.test/i"}},
	}}}}
}

type outcome struct {
	end record.HoldEnd
	err error
}

func (p *place) start(ctx context.Context) <-chan outcome {
	ended := make(chan outcome, 1)
	go func() {
		end, err := Run(ctx, p.plan, p.deps)
		ended <- outcome{end, err}
	}()
	return ended
}

func (p *place) annotations(t *testing.T) map[string]string {
	t.Helper()
	object, err := p.objects.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object.GetAnnotations()
}

func (p *place) held(t *testing.T) bool {
	_, paused := p.annotations(t)[pausedReplicas]
	return paused
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (p *place) startJob(t *testing.T) {
	t.Helper()
	if _, err := p.admin.BatchV1().Jobs(p.plan.Object.Namespace).Create(t.Context(), job(p.plan.Job), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *place) removeJob(t *testing.T, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := p.admin.BatchV1().Jobs(p.plan.Object.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, ended <-chan outcome) outcome {
	t.Helper()
	select {
	case got := <-ended:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("the hold never ends")
	}
	return outcome{}
}

// TestHoldOutlivesPods: the pod of the hold is stopped, then the Job that it was
// for is removed while no pod is there; the next pod restores.
func TestHoldOutlivesPods(t *testing.T) {
	p := newPlace(t, nil)
	p.startJob(t)
	first, stop := context.WithCancel(t.Context())
	ended := p.start(first)
	eventually(t, "held", func() bool { return p.told(EventHeld) == 1 })
	if got := p.annotations(t); got[pausedReplicas] != "1" || got[marker] != "r" || got["mine"] != "stays" {
		t.Errorf("annotations %v", got)
	}
	stop()
	if got := wait(t, ended); failure.KindOf(got.err) != failure.Interrupted || !p.held(t) {
		t.Fatalf("an evicted pod gives scaling back: %v", got.err)
	}
	p.removeJob(t, p.plan.Job)
	// The API server has no controllers, so that the Job of the hold is as the
	// pod left it. The new pod has never seen the run's Job: it was long due.
	p.plan.StartSeconds = 0.001
	got := wait(t, p.start(t.Context()))
	if got.err != nil || !got.end.Restored || p.held(t) || p.annotations(t)["mine"] != "stays" {
		t.Errorf("%+v, %v, annotations %v", got.end, got.err, p.annotations(t))
	}
	if _, marked := p.annotations(t)[marker]; marked {
		t.Error("the mark stays")
	}
}

func TestHoldEnds(t *testing.T) {
	for name, test := range map[string]struct {
		plan func(*record.HoldPlan)
		act  func(t *testing.T, p *place, stop func())
		why  string
	}{
		"the run's Job is removed": {act: func(t *testing.T, p *place, _ func()) { p.removeJob(t, p.plan.Job) }, why: "job/inference-bench-r was removed"},
		"the run's Job fails": {act: func(t *testing.T, p *place, _ func()) {
			patch := `{"status":{"conditions":[{"type":"FailureTarget","status":"True","reason":"PodFailurePolicy"}]}}`
			if _, err := p.admin.BatchV1().Jobs(p.plan.Object.Namespace).Patch(t.Context(), p.plan.Job, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
		}, why: "job/inference-bench-r has ended"},
		"time is over":       {plan: func(p *record.HoldPlan) { p.Seconds = 3 }, act: func(*testing.T, *place, func()) {}, why: "it has lasted 3s, the longest that was planned"},
		"the hold's own Job": {act: func(t *testing.T, p *place, stop func()) { p.removeJob(t, p.deps.Pod.Job); stop() }, why: "the hold was stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, nil)
			if test.plan != nil {
				test.plan(&p.plan)
			}
			p.startJob(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := p.start(ctx)
			eventually(t, "held", func() bool { return p.told(EventHeld) == 1 && p.held(t) })
			test.act(t, p, stop)
			if got := wait(t, ended); got.err != nil || got.end.Why != test.why || !got.end.Restored || p.held(t) {
				t.Errorf("%+v, %v", got.end, got.err)
			}
		})
	}
}

// TestNobodyComes: the plugin died after it had started the hold.
func TestNobodyComes(t *testing.T) {
	p := newPlace(t, nil)
	p.plan.StartSeconds = 2
	ended := p.start(t.Context())
	eventually(t, "held", func() bool { return p.held(t) })
	if got := wait(t, ended); got.err != nil || got.end.Why != "job/inference-bench-r did not come" || p.held(t) {
		t.Errorf("%+v, %v", got.end, got.err)
	}
}

func (p *place) annotate(t *testing.T, name string, value any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{name: value}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.objects.Patch(t.Context(), "web", types.MergePatchType, data, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestOthersWrite: KServe wipes annotations when its own object changes, which
// is told and mended; what a person decides meanwhile is left alone.
func TestOthersWrite(t *testing.T) {
	p := newPlace(t, nil)
	p.startJob(t)
	ended := p.start(t.Context())
	eventually(t, "held", func() bool { return p.held(t) })
	p.annotate(t, pausedReplicas, nil)
	eventually(t, "held again", func() bool { return p.held(t) && p.told(EventLost) == 1 })
	p.annotate(t, pausedReplicas, "4")
	got := wait(t, ended)
	if failure.KindOf(got.err) != failure.Differs || !strings.Contains(got.err.Error(), pausedReplicas) {
		t.Errorf("%v", got.err)
	}
	now := p.annotations(t)
	if _, marked := now[marker]; now[pausedReplicas] != "4" || marked {
		t.Errorf("annotations %v", now)
	}
}

// TestInsists: a writer that undoes the hold again and again wins, and is named.
func TestInsists(t *testing.T) {
	p := newPlace(t, nil)
	p.startJob(t)
	ended := p.start(t.Context())
	for {
		select {
		case got := <-ended:
			if got.err == nil || !strings.Contains(got.err.Error(), "undone 20 times") || !strings.Contains(failure.HintOf(got.err), "GitOps") || p.held(t) {
				t.Errorf("%v", got.err)
			}
			return
		case <-time.After(5 * time.Millisecond):
			p.annotate(t, pausedReplicas, nil)
		}
	}
}

// TestRights: the Role that ships is enough, and without it the hint says where
// it is; a real API server decides.
func TestRights(t *testing.T) {
	asHold := func(config *rest.Config) *rest.Config {
		config.Impersonate.UserName = "system:serviceaccount:NAMESPACE:inference-hold"
		return config
	}
	p := newPlace(t, asHold)
	p.startJob(t)
	got := wait(t, p.start(t.Context()))
	if failure.KindOf(got.err) != failure.Denied || !strings.Contains(failure.HintOf(got.err), "manifests hold/rbac | kubectl apply -n "+p.plan.Object.Namespace) {
		t.Fatalf("%v, hint %q", got.err, failure.HintOf(got.err))
	}
	rights, err := manifests.Files.ReadFile("hold/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server.Start(t).Kubectl(t, string(rights), "apply", "-n", p.plan.Object.Namespace, "-f", "-")
	var ended <-chan outcome
	eventually(t, "held", func() bool {
		if ended == nil {
			ended = p.start(t.Context())
		}
		select {
		case <-ended:
			ended = nil // the authorizer has not seen the Role yet
		default:
		}
		return p.held(t)
	})
	p.removeJob(t, p.plan.Job)
	if got := wait(t, ended); got.err != nil || p.held(t) {
		t.Errorf("%v", got.err)
	}
	// No more than that.
	for resource, verb := range map[schema.GroupVersionResource]string{
		{Version: "v1", Resource: "secrets"}:                               "list",
		{Version: "v1", Resource: "configmaps"}:                            "list",
		{Group: "apps", Version: "v1", Resource: "deployments"}:            "list",
		{Group: "batch", Version: "v1", Resource: "jobs"}:                  "list",
		{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}: "list",
	} {
		if _, err := p.deps.Objects.Resource(resource).Namespace(p.plan.Object.Namespace).List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Errorf("it may %s %s", verb, resource.Resource)
		}
	}
}

func TestFields(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"resourceVersion": "7"}, "spec": map[string]any{"minReplicas": int64(1), "maxReplicas": int64(6)},
	}}
	plan := record.HoldPlan{Changes: []record.HoldChange{
		{Path: []string{"spec", "minReplicas"}, Before: 1.0, Held: 2},
		{Path: []string{"spec", "maxReplicas"}, Before: 5.0, Held: 2},
		{Path: []string{"spec", "idle"}, Before: nil, Held: 2},
	}}
	now := stateOf(plan, object)
	if len(now.before) != 2 || len(now.other) != 1 || names(now.other)[0] != "spec.maxReplicas" {
		t.Errorf("%+v", now)
	}
	data, err := patch(object, now.before, held)
	if err != nil || string(data) != `{"metadata":{"resourceVersion":"7"},"spec":{"idle":2,"minReplicas":2}}` {
		t.Errorf("%s: %v", data, err)
	}
	data, err = patch(object, now.before, before)
	if err != nil || string(data) != `{"metadata":{"resourceVersion":"7"},"spec":{"idle":null,"minReplicas":1}}` {
		t.Errorf("%s: %v", data, err)
	}
}
