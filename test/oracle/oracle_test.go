package oracle

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// syncsPerTrace is about eight minutes: longer than every window drawn.
const syncsPerTrace = 32

// TestControllerAgrees runs traces of the real controller and holds two views
// against it after every sync: the model with everything known, which must
// arrive at the same size, conditions and winner; and the model with what a
// kubectl user can read, whose bounds must contain the controller's size.
// ORACLE_TRACES sets how many traces run, ORACLE_SEED where they start.
func TestControllerAgrees(t *testing.T) {
	traces, seed := setting(t, "ORACLE_TRACES", 60), setting(t, "ORACLE_SEED", 1)
	var sum tally
	for i := range traces {
		g := generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
		synctest.Test(t, func(t *testing.T) { runTrace(t, g, i, &sum) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d states agree; read from outside %d of them are exact, %d are bounds", sum.states, sum.exact, sum.states-sum.exact)
}

// TestMain takes out client-go's error handlers: one of them waits by a clock of
// the process, and time starts anew in every trace.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

type tally struct{ states, exact int }

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

func runTrace(t *testing.T, g generator, trace int, sum *tally) {
	object := g.hpa()
	w := &world{spec: int32(1 + g.IntN(int(object.Spec.MaxReplicas)))}
	w.ready = g.step(w, object)
	started := *w
	client, stop := w.start(object)
	defer stop()
	memory := &memory{}
	// The first sync is at once; from then on the trace looks half a period
	// behind the controller.
	wait := syncPeriod / 2
	for range syncsPerTrace {
		seen, snapshot := len(w.syncs), *w
		if wait < syncPeriod {
			seen, snapshot = 0, started
		}
		time.Sleep(wait)
		wait = syncPeriod
		if len(w.syncs) != seen+1 {
			t.Fatalf("trace %d: %d syncs in one period", trace, len(w.syncs)-seen)
		}
		compare(t, trace, client, &snapshot, w, memory, sum)
		if t.Failed() {
			return
		}
		w.setReady(client, g.step(w, object))
	}
}

// memory is what the controller remembers.
type memory struct {
	history  *hpa.History
	rescales *hpa.Rescales
}

func compare(t *testing.T, trace int, client *fake.Clientset, before, after *world, m *memory, sum *tally) {
	t.Helper()
	object, err := client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(context.Background(), "h", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := after.syncs[len(after.syncs)-1]
	if m.history == nil {
		// The controller starts with the size that it finds.
		m.history = &hpa.History{Recommendations: []hpa.Recommendation{{Time: at, Count: before.spec}}}
		m.rescales = &hpa.Rescales{}
	}
	observed := hpa.ObservedIn(object)
	decision := hpa.Decide(known(object, before, m, at))
	check := hpa.Compare(decision, observed)
	sum.states++

	switch {
	case decision.Desired != hpa.Exactly(after.spec):
		t.Fatalf("trace %d at %v: the model says %v, the controller set %d\n%s", trace, at, decision.Desired, after.spec, steps(decision, observed))
	case !check.Compared, !check.Exact, !check.Agrees():
		t.Fatalf("trace %d at %v: %+v\n%s", trace, at, check, steps(decision, observed))
	}
	outside(t, after.events, object, before, observed, at, sum, after.spec)

	m.history, m.rescales = hpa.Remember(decision, after.spec)
}

// known is the input with everything that the controller had.
func known(object *autoscalingv2.HorizontalPodAutoscaler, w *world, m *memory, at time.Time) hpa.Input {
	in := hpa.FromObject(object, hpa.Exactly(w.status), hpa.Exactly(int32(w.ready)), hpa.Version{Major: 1, Minor: 37}, at)
	in.Replicas.Spec = w.spec
	for i := range in.Metrics {
		metric := &in.Metrics[i]
		if total, found := w.totals[metric.Name]; found {
			metric.Seen = hpa.Observation{State: hpa.Seen, Total: &total}
		} else {
			metric.Seen = hpa.Observation{State: hpa.Failed, Reason: "FailedGet" + string(metric.Type) + "Metric"}
		}
	}
	in.History, in.Rescales = m.history, m.rescales
	return in
}

// outside is the input that a kubectl user has: the status with its rounding,
// the events, and no memory.
func outside(t *testing.T, events map[string]*corev1.Event, object *autoscalingv2.HorizontalPodAutoscaler, w *world, observed hpa.Observed, at time.Time, sum *tally, size int32) {
	t.Helper()
	in := hpa.FromObject(object, hpa.Exactly(w.status), hpa.Exactly(int32(w.ready)), hpa.Version{Major: 1, Minor: 37}, at)
	sizes := []hpa.SizeEvent{}
	for _, event := range events {
		if n, reason, ok := hpa.ParseRescale(event.Message); ok && event.Reason == "SuccessfulRescale" {
			sizes = append(sizes, hpa.SizeEvent{Time: event.LastTimestamp.Time, Count: event.Count, Size: n, Reason: reason})
		}
	}
	in.Slack = time.Second
	in.Rescales = in.KnownRescales(sizes, observed)
	decision := hpa.Decide(in)
	check := hpa.Compare(decision, observed)
	if !decision.Desired.Contains(size) || !check.Agrees() {
		t.Fatalf("from outside at %v: %v for %d, %+v\nevents %+v\n%s", at, decision.Desired, size, check, sizes, steps(decision, observed))
	}
	if decision.Desired.Exact() {
		sum.exact++
	}
}

// steps tells a decision in a few lines.
func steps(d hpa.Decision, observed hpa.Observed) string {
	var text strings.Builder
	in := d.Input
	fmt.Fprintf(&text, "replicas %+v of %d to %d\nbehavior %+v\n", in.Replicas, in.Min, in.Max, in.Behavior)
	for _, p := range d.Proposals {
		fmt.Fprintf(&text, "metric %s %s %s: %v %s, ratio %v\n", p.Metric.Type, p.Metric.Name, p.Metric.Target, p.Count, p.Reason, p.Ratio)
	}
	if in.History != nil {
		fmt.Fprintf(&text, "remembers %+v\n", in.History.Recommendations)
	}
	fmt.Fprintf(&text, "rescales %+v\n%s, raw %v, blocking %s\nstabilization %+v\nlimit %+v\ncontroller %+v\n",
		in.Rescales, d.Path, d.Raw, d.Blocking, d.Stabilization, d.Limit, observed)
	return text.String()
}
