package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var shared apiserver.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{
  "replicas":1,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
  "spec":{"containers":[{"name":"engine","image":"example.test/engine:1","args":["s3://models/a"]}]}}}}`

// world is a rollout against a real API server, an engine and a bucket that the
// test plays: no controller and no kubelet runs.
type world struct {
	*run
	t      *testing.T
	events []string
	// on is called after each event, in which the test changes the cluster.
	on func(name, message string)
}

func newWorld(t *testing.T, engine http.HandlerFunc) *world {
	t.Helper()
	config := shared.Start(t).Config(apiserver.Admin)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rollout-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ServiceAccounts(namespace.Name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	w := &world{t: t, on: func(string, string) {}}
	w.run = &run{
		plan: record.RolloutPlan{Name: "web", Namespace: namespace.Name, Verify: record.VerifyFast, Deployment: "web", URL: server.URL + "/", ServedModel: "web", TimeoutSeconds: 30,
			Model: record.RolloutModel{URI: "s3://models/a"}, Objects: []json.RawMessage{json.RawMessage(deployment)}},
		deps: Deps{Objects: bucketOf(t), Client: client, Dynamic: objects, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
			HTTP: server.Client(), Now: time.Now, Poll: time.Millisecond, Emit: w.hear},
		started: time.Now(),
	}
	return w
}

func (w *world) hear(event record.Event) {
	line := event.Name + ": " + event.Message
	if event.Name == record.EventProgress {
		line = fmt.Sprintf("progress: %.0f of %.0f %s", *event.Done, *event.Total, event.Unit)
	}
	if len(w.events) == 0 || w.events[len(w.events)-1] != line {
		w.events = append(w.events, line)
		w.on(event.Name, event.Message)
	}
}

// pod makes or changes a pod of the Deployment.
func (w *world) pod(name string, status corev1.PodStatus) *corev1.Pod {
	w.t.Helper()
	pods := w.deps.Client.CoreV1().Pods(w.plan.Namespace)
	pod, err := pods.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		pod, err = pods.Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "engine", Image: "example.test/engine:1"}}}}, metav1.CreateOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	pod.Status = status
	if pod, err = pods.UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// settle is what the controller of Deployments does at the end.
func (w *world) settle(replicas int32) {
	w.t.Helper()
	deployments := w.deps.Client.AppsV1().Deployments(w.plan.Namespace)
	found, err := deployments.Get(w.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	found.Status.ObservedGeneration = found.Generation
	found.Status.Replicas, found.Status.UpdatedReplicas, found.Status.ReadyReplicas, found.Status.AvailableReplicas = replicas, replicas, replicas, replicas
	if _, err := deployments.UpdateStatus(w.t.Context(), found, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// good is an engine that serves "web".
func good(w http.ResponseWriter, request *http.Request) {
	switch request.Method + " " + request.URL.Path {
	case "GET /v1/models":
		fmt.Fprint(w, `{"data":[{"id":"base"},{"id":"web","max_model_len":4096}]}`)
	case "POST /v1/completions":
		fmt.Fprint(w, `{"choices":[{"text":"x"}]}`)
	default:
		http.NotFound(w, request)
	}
}

// bucket holds a complete delivery.
type bucket struct {
	mutex    sync.Mutex
	manifest []byte
	sizes    map[string]int64
	digests  map[string]string
	denied   bool
}

func bucketOf(t *testing.T) *bucket {
	t.Helper()
	manifest := record.Manifest{ModelID: "owner/name", Revision: strings.Repeat("a", 40)}
	b := &bucket{sizes: map[string]int64{}, digests: map[string]string{}}
	for i, name := range []string{"config.json", "model.safetensors"} {
		digest := strings.Repeat(fmt.Sprint(i), 64)
		manifest.Files = append(manifest.Files, record.ManifestFile{Path: name, Size: int64(10 + i), SHA256: digest})
		b.sizes[name], b.digests[name] = int64(10+i), digest
	}
	if err := manifest.Seal(); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.manifest, err = json.Marshal(manifest); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bucket) Get(context.Context, string) ([]byte, error) {
	switch {
	case b.denied:
		return nil, failure.New(failure.Denied, "add s3:GetObject", "access denied")
	case b.manifest == nil:
		return nil, failure.New(failure.NotFound, "", "no such key")
	}
	return b.manifest, nil
}

func (b *bucket) Stat(_ context.Context, name string) (int64, string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	size, ok := b.sizes[name]
	if !ok {
		return 0, "", failure.New(failure.NotFound, "", "no such key")
	}
	return size, b.digests[name], nil
}

func TestVerify(t *testing.T) {
	const heal = "hint: heal it: run `kubectl inference sync-model` again with the same revision and destination\n"
	for name, test := range map[string]struct {
		change func(*bucket, *record.RolloutPlan)
		kind   failure.Kind
		want   string
	}{
		"complete":                   {func(*bucket, *record.RolloutPlan) {}, 0, ""},
		"the right revision":         {func(_ *bucket, p *record.RolloutPlan) { p.Model.Revision = strings.Repeat("a", 40) }, 0, ""},
		"the store knows no digests": {func(b *bucket, _ *record.RolloutPlan) { clear(b.digests) }, 0, ""},
		"no manifest": {func(b *bucket, _ *record.RolloutPlan) { b.manifest = nil }, failure.NotFound,
			"error: verify s3://models/a: it has no _MANIFEST.json, so it is not complete\nhint: finish the delivery first: `kubectl inference sync-model` writes the manifest when every file is verified\n"},
		"another revision": {func(_ *bucket, p *record.RolloutPlan) { p.Model.Revision = strings.Repeat("b", 40) }, failure.Differs,
			"error: verify s3://models/a: its manifest names revision " + strings.Repeat("a", 40) + ", not " + strings.Repeat("b", 40) + "\nhint: choose the prefix of that revision, or give --revision " + strings.Repeat("a", 40) + "\n"},
		"a file is missing":         {func(b *bucket, _ *record.RolloutPlan) { delete(b.sizes, "config.json") }, failure.Differs, "error: verify s3://models/a: config.json is missing, the manifest lists it\n" + heal},
		"a file is short":           {func(b *bucket, _ *record.RolloutPlan) { b.sizes["model.safetensors"] = 3 }, failure.Differs, "error: verify s3://models/a: model.safetensors has 3 bytes, the manifest says 11\n" + heal},
		"a file is altered":         {func(b *bucket, _ *record.RolloutPlan) { b.digests["config.json"] = "bad" }, failure.Differs, "error: verify s3://models/a: config.json has SHA-256 bad, the manifest says " + strings.Repeat("0", 64) + "\n" + heal},
		"objects are not looked at": {func(b *bucket, p *record.RolloutPlan) { clear(b.sizes); p.Verify = record.VerifyManifest }, 0, ""},
		"a newer schema": {func(b *bucket, _ *record.RolloutPlan) { b.manifest = []byte(`{"schema_version": 9}`) }, failure.Usage,
			"error: verify s3://models/a: read manifest: schema_version 9 is not known, this build reads 1 and 2\nhint: use the kubectl-inference release that wrote it, or a newer one\n"},
		"not a manifest": {func(b *bucket, _ *record.RolloutPlan) { b.manifest = []byte(`<html>`) }, failure.Failed,
			"error: verify s3://models/a: read manifest: not a JSON document: invalid character '<' looking for beginning of value\n"},
		"no permission": {func(b *bucket, _ *record.RolloutPlan) { b.denied = true }, failure.Denied, "error: verify s3://models/a: access denied\nhint: add s3:GetObject\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bucketOf(t)
			r := &run{plan: record.RolloutPlan{Model: record.RolloutModel{URI: "s3://models/a"}, Verify: record.VerifyFast}, deps: Deps{Objects: b, Emit: func(record.Event) {}, Now: time.Now}}
			test.change(b, &r.plan)
			_, err := r.verify(t.Context())
			checkFailure(t, err, test.kind, test.want)
		})
	}
}

func checkFailure(t *testing.T, err error, kind failure.Kind, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = failure.Text(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if want != "" && failure.KindOf(err) != kind {
		t.Errorf("the failure is of kind %d, want %d", failure.KindOf(err), kind)
	}
}

// TestRun is a whole rollout, and a second one that changes nothing.
func TestRun(t *testing.T) {
	w := newWorld(t, good)
	w.on = func(name, message string) {
		if name == "apply" {
			w.pod("web-1", corev1.PodStatus{})
		}
		if name == record.EventProgress && strings.HasPrefix(message, "0 of 1") {
			now := metav1.Now()
			w.pod("web-1", corev1.PodStatus{Phase: corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "engine", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}})
			w.settle(1)
		}
	}
	start, err := Run(t.Context(), w.plan, w.deps)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"verify: s3://models/a holds owner/name at revision " + strings.Repeat("a", 40) + ": 2 files, 21 bytes, as its manifest says",
		"apply: Deployment web created", "progress: 0 of 1 replicas", "progress: 1 of 1 replicas", "served: web answers at " + w.plan.URL,
	}, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if start.ServedModel != "web" || *start.MaxModelLen != 4096 || start.ModelID != "owner/name" || len(start.Replicas) != 1 || start.Replicas[0].FirstTokenSeconds == nil {
		t.Errorf("cold start %+v", start)
	}

	w.events, w.on = nil, func(string, string) {}
	later := w.deps
	later.Now = func() time.Time { return time.Now().Add(time.Hour) }
	start, err = Run(t.Context(), w.plan, later)
	if err != nil || start.Replicas == nil || len(start.Replicas) != 0 {
		t.Errorf("a rollout that changed nothing measured %+v, error %v", start.Replicas, err)
	}
	if got := w.events[1]; got != "apply: Deployment web unchanged" {
		t.Errorf("the second rollout says %q", got)
	}
}

func TestApply(t *testing.T) {
	w := newWorld(t, good)
	apply := func(object string) error {
		w.events, w.changed = nil, false
		w.plan.Objects = []json.RawMessage{json.RawMessage(object)}
		return w.apply(t.Context())
	}
	newer := strings.Replace(deployment, "engine:1", "engine:2", 1)
	for i, step := range []struct {
		object, want string
		changed      bool
	}{
		{deployment, "apply: Deployment web created", true},
		{deployment, "apply: Deployment web unchanged", false},
		{newer, "apply: Deployment web configured", true},
	} {
		if err := apply(step.object); err != nil || w.events[0] != step.want || w.changed != step.changed {
			t.Errorf("step %d: %q, changed %v, error %v", i, w.events, w.changed, err)
		}
	}
	// Somebody else takes the image over.
	patch := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{"containers":[{"name":"engine","image":"example.test/engine:3"}]}}}}`
	force := true
	if _, err := w.deps.Client.AppsV1().Deployments(w.plan.Namespace).Patch(t.Context(), "web", types.ApplyPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "argocd", Force: &force}); err != nil {
		t.Fatal(err)
	}
	err := apply(newer)
	if failure.KindOf(err) != failure.Differs || !strings.Contains(err.Error(), `conflict with "argocd"`) || !strings.HasPrefix(err.Error(), "apply Deployment "+w.plan.Namespace+"/web: ") {
		t.Errorf("conflict: %v", err)
	}
	err = apply(`{"apiVersion":"serving.kserve.io/v1beta1","kind":"InferenceService","metadata":{"name":"web"}}`)
	if failure.KindOf(err) != failure.NotFound || !strings.HasPrefix(failure.HintOf(err), "KServe is not installed") {
		t.Errorf("no KServe: %v", err)
	}
	if err = apply(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"bad"},"spec":{}}`); failure.KindOf(err) != failure.Usage {
		t.Errorf("an invalid object: %v", err)
	}
	if err = apply(`[]`); failure.KindOf(err) != failure.Usage {
		t.Errorf("not an object: %v", err)
	}
	guest := shared.Start(t).Config(apiserver.Guest)
	if w.deps.Dynamic, err = dynamic.NewForConfig(guest); err != nil {
		t.Fatal(err)
	}
	if err = apply(newer); failure.KindOf(err) != failure.Denied || !strings.Contains(failure.HintOf(err), "manifests rbac/rollout") {
		t.Errorf("forbidden: %v", err)
	}
}

func TestApplyNotesTheImage(t *testing.T) {
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(`{"spec":{"predictor":{"containers":[{"image":"a:1"}]}}}`), &object.Object); err != nil {
		t.Fatal(err)
	}
	if got := engineImage(object); got != "a:1" {
		t.Errorf("image %q", got)
	}
	if got := engineImage(unstructured.Unstructured{Object: map[string]any{}}); got != "" {
		t.Errorf("image %q of nothing", got)
	}
}
