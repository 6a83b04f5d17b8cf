package explain

import (
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// runScan runs the command against a world's server.
func (w *world) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	w.seen()
	return runCluster(t, w.url, append([]string{"-n", w.namespace}, args...)...)
}

func (w *world) addAll(t testing.TB, services []service) {
	t.Helper()
	work := make(chan service)
	var workers sync.WaitGroup
	var mutex sync.Mutex
	var failed error
	for range 16 {
		workers.Go(func() {
			for s := range work {
				if err := w.add(s); err != nil {
					mutex.Lock()
					failed = err
					mutex.Unlock()
				}
			}
		})
	}
	for _, s := range services {
		work <- s
	}
	close(work)
	workers.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	w.cached(t)
}

// cached waits until the API server's cache, from which a scan reads, has what
// was written: it follows the store by a moment.
func (w *world) cached(t testing.TB) {
	t.Helper()
	versions := func(resource schema.GroupVersionResource, at string) map[string]string {
		list, err := w.dynamic.Resource(resource).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: at})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, item := range list.Items {
			all[item.GetName()] = item.GetResourceVersion()
		}
		return all
	}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "pods"},
	} {
		want := versions(resource, "")
		for !maps.Equal(want, versions(resource, "0")) {
			if t.Context().Err() != nil {
				t.Fatal(t.Context().Err())
			}
		}
	}
}

// states is one service in each state that a scan tells apart.
func states() []service {
	held := steady("held-at-max", 0)
	held.replicas, held.desired, held.average, held.limited, held.limitedTrue = 4, 4, "5", "TooManyReplicas", true
	wrong := steady("wrong", 0)
	wrong.desired = 1
	none := steady("no-hpa", 0)
	none.withoutHPA = true
	return []service{steady("fine", 0), held, wrong, none}
}

func TestScan(t *testing.T) {
	w := newWorld(t, "scan", apiserver.Admin)
	w.addAll(t, states())
	stdout, stderr, err := w.run(t, "-o", "json")
	if err != nil || stderr != "" {
		t.Fatalf("%v %s", err, stderr)
	}
	var document record.ScalingScan
	if err := record.Decode([]byte(stdout), record.KindScalingScan, &document); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range document.Items {
		got = append(got, item.Severity+" "+item.Target+" "+item.Summary)
	}
	want := []string{
		"error so/no-hpa KEDA reports Ready=False (ScaledObjectCheckFailed): cpu trigger without a target",
		"error so/wrong disagrees with the controller on desired_replicas: 2 to 4 here, 1 there",
		"warning so/held-at-max stay at 4: the metrics ask for 10, the maximum is 4",
		"none so/fine stay at 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	stdout, _, err = w.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(stdout, "\n"); len(lines) != 6 || !strings.HasPrefix(lines[1], "error") || strings.Contains(lines[0], "NAMESPACE") {
		t.Errorf("got\n%s", stdout)
	}
	stdout, _, err = w.run(t, "-A")
	if err != nil || !strings.Contains(stdout, "NAMESPACE") {
		t.Errorf("%v\n%s", err, stdout)
	}
}

// TestScanLarge: the number of requests does not grow with the cluster.
func TestScanLarge(t *testing.T) {
	w := newWorld(t, "large", apiserver.Admin)
	services := states()
	// One metric that counts Ready pods makes the scan read pods.
	whole := steady("whole", 5)
	whole.wholeTarget = true
	services = append(services, whole)
	for i := range 995 {
		services = append(services, steady(name(i), 5))
	}
	w.addAll(t, services)
	began := time.Now()
	stdout, _, err := w.run(t, "-A", "-o", "json")
	t.Logf("%d services and %d pods in %s", len(services), 5*996, time.Since(began))
	if err != nil {
		t.Fatal(err)
	}
	var document record.ScalingScan
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Items) < 1000 {
		t.Errorf("%d items", len(document.Items))
	}
	requests := w.seen()
	if len(requests) > 25 {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
	t.Logf("%d requests", len(requests))

	// One target, whatever else is in the namespace.
	began = time.Now()
	if _, stderr, err := w.run(t, "so/whole"); err != nil || stderr != "" {
		t.Errorf("%v %s", err, stderr)
	}
	requests = w.seen()
	t.Logf("one target: %d requests in %s", len(requests), time.Since(began))
	if len(requests) > 12 {
		t.Errorf("%d requests for one target: %v", len(requests), requests)
	}
}

func name(i int) string {
	letters := ""
	for n := i + 26; n > 0; n /= 26 {
		letters += string(rune('a' + n%26))
	}
	return "svc-" + letters
}

// TestScanDegrades: what may not be read is named, the rest is explained.
func TestScanDegrades(t *testing.T) {
	w := newWorld(t, "partial", apiserver.Guest)
	w.addAll(t, []service{steady("fine", 0)})
	_, _, err := w.run(t)
	if failure.KindOf(err) != failure.Denied || !strings.Contains(err.Error(), "list horizontalpodautoscalers in partial") {
		t.Errorf("got %v", err)
	}
	w.server.Kubectl(t, "", "create", "role", "hpas", "-n", "partial", "--verb=list", "--resource=horizontalpodautoscalers")
	w.server.Kubectl(t, "", "create", "rolebinding", "hpas", "-n", "partial", "--role=hpas", "--user="+apiserver.Guest)
	stdout, _, err := w.run(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"so/fine   2 of 1-4   stay at 2",
		"cannot list scaledobjects.keda.sh in partial: triggers are shown as the HPAs know them",
		"cannot list deployments.apps in partial",
		"cannot list events in partial",
	} {
		if !strings.Contains(stdout, line) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
}

func TestScanEmpty(t *testing.T) {
	w := newWorld(t, "empty", apiserver.Admin)
	stdout, _, err := w.run(t)
	if err != nil || stdout != "Nothing scales anything in empty: no HPA and no ScaledObject.\n" {
		t.Errorf("%v %q", err, stdout)
	}
}
