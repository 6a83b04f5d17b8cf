package explain

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// lease writes the controller's Lease, taken over at a time and just renewed.
func (w *world) lease(t *testing.T, since time.Time) {
	t.Helper()
	leases := w.typed.CoordinationV1().Leases(chain.LeaderNamespace)
	_ = leases.Delete(t.Context(), chain.LeaderName, metav1.DeleteOptions{})
	acquired, renewed := metav1.NewMicroTime(since), metav1.NewMicroTime(time.Now())
	_, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: chain.LeaderName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("machine-a"), LeaseDurationSeconds: new(int32(15)), AcquireTime: &acquired, RenewTime: &renewed,
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// tell writes an event as a controller of the cluster does.
func (w *world) tell(t *testing.T, kind, name, reason, message string, at time.Time) {
	t.Helper()
	stamp := metav1.NewTime(at)
	_, err := w.typed.CoreV1().Events(w.namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: name + "-"},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: w.namespace, Name: name},
		Reason:         reason, Message: message, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: stamp, LastTimestamp: stamp,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMemory: a rescale 2 -> 4 fills what "+100% per minute" allows.
// The size before it, and that the controller still knows of it, are told by the
// Deployment's events and by the Lease.
func TestMemory(t *testing.T) {
	w := newWorld(t, "memory", apiserver.Admin)
	w.addAll(t, []service{{name: "busy", replicas: 4, max: 20, average: "8", target: "2", desired: 4, able: "ReadyForNewScale", limited: "ScaleUpLimit", limitedTrue: true}})
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	deployment, err := deployments.Get(t.Context(), "busy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deployment.Status.UpdatedReplicas = 4
	if _, err := deployments.UpdateStatus(t.Context(), deployment, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	hpas := w.typed.AutoscalingV2().HorizontalPodAutoscalers(w.namespace)
	object, err := hpas.Get(t.Context(), "keda-hpa-busy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 60}},
	}}
	if object, err = hpas.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The server writes its own time into managedFields, and what was before the
	// last edit of the HPA proves little: the rescale lies a few seconds ahead.
	at := time.Now().Add(6 * time.Second).Truncate(time.Second)
	object.Status.LastScaleTime = new(metav1.NewTime(at))
	if _, err := hpas.UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.tell(t, "HorizontalPodAutoscaler", "keda-hpa-busy", "SuccessfulRescale", "New size: 4; reason: external metric s0-prometheus(nil) above target", at)
	allows := func(document record.ScalingExplanation) record.CountRange {
		t.Helper()
		c := document.Chains[0]
		if c.Decision == nil || c.Decision.RateLimit == nil || c.Decision.RateLimit.Allows == nil || !c.Check.Agrees {
			t.Fatalf("got %+v %+v", c.Decision, c.Check)
		}
		if got := *c.Decision.RateLimit.Allows; got.Low != 4 || got.High == nil || *got.High != 4 {
			t.Errorf("ScaleUpLimit with a size of 4 proves the limit, not %+v", got)
		}
		// What the model knows without the conditions.
		return c.Decision.Desired
	}
	exactly := func(n int32) record.CountRange { return record.CountRange{Low: n, High: &n} }
	between := func(low, high int32) record.CountRange { return record.CountRange{Low: low, High: &high} }

	blind := w.explain(t, "so/busy")
	if diff := cmp.Diff(between(4, 8), allows(blind)); diff != "" {
		t.Errorf("with neither: %s", diff)
	}
	if len(blind.Unread) != 1 || !strings.HasPrefix(blind.Unread[0].Message, "there is no lease kube-controller-manager in kube-system") {
		t.Errorf("got %+v", blind.Unread)
	}
	w.tell(t, "Deployment", "busy", "ScalingReplicaSet", "Scaled up replica set busy-5d4 from 2 to 4", at)
	if diff := cmp.Diff(between(4, 8), allows(w.explain(t, "so/busy"))); diff != "" {
		t.Errorf("a new controller may have forgotten it: %s", diff)
	}
	w.lease(t, time.Now().Add(-time.Hour))
	dir := filepath.Join(t.TempDir(), "ticket")
	known := w.explain(t, "so/busy", "--record", dir)
	requests := w.seen()
	if diff := cmp.Diff(exactly(4), allows(known)); diff != "" {
		t.Errorf("with both: %s", diff)
	}
	if len(known.Unread) != 0 || !known.Chains[0].Decision.Exact || len(known.Chains[0].Decision.Assumes) != 1 {
		t.Errorf("got %+v %+v", known.Unread, known.Chains[0].Decision)
	}
	if len(requests) > 12 || !slices.ContainsFunc(requests, func(r string) bool { return strings.HasSuffix(r, "/leases/kube-controller-manager") }) {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
	there := document(t, "-f", dir)
	if diff := cmp.Diff(known.Chains, there.Chains); diff != "" {
		t.Errorf("elsewhere: %s", diff)
	}
	// A controller that took over since then has forgotten it for sure.
	w.lease(t, at.Add(3*time.Second))
	if diff := cmp.Diff(exactly(8), limitOf(w.explain(t, "so/busy"))); diff != "" {
		t.Errorf("a new leader: %s", diff)
	}
}

// limitOf is what the policies allow where the check may fail: the status of the
// test was not written by a new leader.
func limitOf(document record.ScalingExplanation) record.CountRange {
	return *document.Chains[0].Decision.RateLimit.Allows
}
