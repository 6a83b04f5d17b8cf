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
