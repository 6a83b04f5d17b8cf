package oracle

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// course is how long a trace is, and what happens in it, in percent of syncs.
type course struct{ syncs, restarts, edits int }

// A short course is about eight minutes: longer than every window drawn.
var short = course{syncs: 32, restarts: 3}

// TestControllerAgrees runs traces of the real controller and holds two views
// against it after every sync: the model with everything known, which must
// arrive at the same size, conditions and winner; and the model with what a
// kubectl user can read, whose bounds must contain all of that.
// ORACLE_STATES sets how many states are compared, ORACLE_SEED which, and
// ORACLE_TRACE the first trace, to see one again.
func TestControllerAgrees(t *testing.T) {
	states, seed := setting(t, "ORACLE_STATES", 20_000), setting(t, "ORACLE_SEED", 1)
	version := controllerVersion(t)
	var sum tally
	for i := setting(t, "ORACLE_TRACE", 0); sum.states < states; i++ {
		g := generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
		synctest.Test(t, func(t *testing.T) { runTrace(t, g, version, i, short, &sum) })
		if t.Failed() {
			return
		}
	}
	sum.report(t, version)
}

// TestMain takes out client-go's error handlers: one of them waits by a clock of
// the process, and time starts anew in every trace.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// trace is one run of a controller, restarts included.
type trace struct {
	number  int
	version hpa.Version
	world   *world
	client  *fake.Clientset
	// history and rescales are what the controller remembers.
	history  *hpa.History
	rescales *hpa.Rescales
	// since is when the controller took over.
	since time.Time
	// began is when the HPA was made, status the last one, of statusAt.
	began    time.Time
	status   *autoscalingv2.HorizontalPodAutoscalerStatus
	statusAt time.Time
	// zeroed is the condition ScaledToZero before the sync.
	zeroed bool
	sum    *tally
}

func runTrace(t *testing.T, g generator, version hpa.Version, number int, c course, sum *tally) {
	object := g.hpa()
	w := &world{flags: g.flags()}
	w.spec = int32(1 + g.IntN(int(object.Spec.MaxReplicas)+1))
	m := g.mood()
	g.step(w, m, object, time.Now())
	tr := &trace{number: number, version: version, world: w, client: w.api(object), since: time.Now(), began: time.Now(), sum: sum}
	seen, before := 0, w.situation
	stop := w.start(tr.client)
	defer func() { stop() }()
	for range c.syncs {
		if !w.await(seen + 1) {
			t.Fatalf("trace %d: no sync for two periods", number)
		}
		if !tr.compare(t, object, before) {
			return
		}
		next, restarts := w.syncs[len(w.syncs)-1].Add(syncPeriod), g.chance(c.restarts)
		if restarts {
			// A new leader remembers nothing.
			stop()
			tr.history, tr.rescales = nil, nil
			next = time.Now()
		}
		if g.chance(c.edits) {
			object = tr.edit(t, g)
			// Values of the old metrics may be beyond any size in the new ones.
			w.totals = nil
		}
		// Up to 1.33 a rival's size stays: the workload's controller sees it.
		w.resized(w.stepped(), w.spec)
		size := w.spec
		g.step(w, m, object, next)
		w.resized(size, w.spec)
		seen, before = len(w.syncs), w.situation
		if restarts {
			tr.since = time.Now()
			stop = w.start(tr.client)
		} else {
			w.showPods()
		}
	}
}

// await waits until the controller has begun its nth sync, and a second more
// for what it writes.
func (w *world) await(n int) bool {
	for range 10 {
		time.Sleep(4 * time.Second)
		if len(w.syncs) >= n {
			time.Sleep(time.Second)
			return true
		}
	}
	return false
}

// compare holds both views against what the controller did in its last sync.
func (tr *trace) compare(t *testing.T, object *autoscalingv2.HorizontalPodAutoscaler, before situation) bool {
	t.Helper()
	written, err := tr.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(context.Background(), object.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	written = reread(t, written)
	at, size := tr.world.syncs[len(tr.world.syncs)-1], tr.world.spec
	tr.stamp(written, at)
	observed := hpa.ObservedIn(written)
	tr.sum.states++
	if before.noScale {
		if observed.Able != "FailedGetScale" || observed.AbleTrue || size != before.spec {
			t.Errorf("trace %d at %v: without a scale the size went to %d: %+v", tr.number, at, size, observed)
		}
		return !t.Failed()
	}
	if tr.history == nil {
		// The controller starts with the size that it finds.
		tr.history = &hpa.History{Recommendations: []hpa.Recommendation{{Time: at, Count: before.spec}}}
		tr.rescales = &hpa.Rescales{}
	}
	decision := hpa.Decide(tr.known(written, before, at))
	problems := conditions(decision, observed, tr.input(written, before, at).Metrics, before, size)
	if observed.AbleTrue {
		check := hpa.Compare(decision, observed)
		if !check.Compared || !check.Exact || !check.Agrees() {
			problems = append(problems, "the check finds a difference")
		}
	}
	if len(problems) == 0 {
		problems = tr.outside(written, before, observed, at, decision)
	}
	if len(problems) > 0 {
		t.Errorf("trace %d at %v: %s\n%s", tr.number, at, strings.Join(problems, "; "), steps(decision, observed, before))
	}
	if !observed.AbleTrue {
		size = before.spec
	}
	wrote := at
	if w := tr.world.wrote; w.After(at) {
		// After a conflict the controller waits some milliseconds.
		wrote = w
	}
	tr.history, tr.rescales = hpa.RememberAt(decision, size, wrote)
	tr.zeroed = observed.ScaledToZero
	return !t.Failed()
}

// known is the input with everything that the controller had.
func (tr *trace) known(object *autoscalingv2.HorizontalPodAutoscaler, before situation, at time.Time) hpa.Input {
	in := tr.input(object, before, at)
	in.Replicas.Spec = before.spec
	in.ScaledToZero = tr.zeroed
	in.Unselectable = ""
	if before.selector != selector {
		in.Unselectable = hpa.InvalidSelector
	}
	for i := range in.Metrics {
		metric := &in.Metrics[i]
		metric.Seen = hpa.Observation{State: hpa.Failed, Reason: "FailedGet" + string(metric.Type) + "Metric"}
		if total, found := before.totals[metric.Name]; found {
			metric.Seen = hpa.Observation{State: hpa.Seen, Total: &total}
		}
		if samples := before.samples[sampleKey(metric.Name, metric.Container)]; len(samples) > 0 {
			metric.Seen = hpa.Observation{State: hpa.Seen, Samples: map[string]hpa.Sample{}}
			for name, sample := range samples {
				metric.Seen.Samples[name] = hpa.Sample{Milli: sample.Value, Time: sample.Timestamp, Window: sample.Window}
			}
		}
	}
	in.History, in.Rescales = tr.history, tr.rescales
	return in
}

// input is what both views share.
func (tr *trace) input(object *autoscalingv2.HorizontalPodAutoscaler, before situation, at time.Time) hpa.Input {
	in := hpa.FromObject(object, hpa.Exactly(before.status), hpa.Exactly(hpa.ReadyPods(before.pods)), tr.version, at)
	in.Flags, in.Pods = tr.world.flags.model(), before.pods
	return in
}
