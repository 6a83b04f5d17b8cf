package oracle

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A long course is hours with leader changes and edits of the HPA: what the
// controller remembers then follows rules that no longer hold, and of its
// events some are merged, dropped or gone.
var long = course{syncs: 2 * 240, restarts: 1, edits: 2}

// TestLongTraces is TestControllerAgrees over traces of hours. ORACLE_HOURS sets
// how many hours of syncs in all.
func TestLongTraces(t *testing.T) {
	hours, seed := setting(t, "ORACLE_HOURS", 60), setting(t, "ORACLE_SEED", 1)
	version := controllerVersion(t)
	var sum tally
	for i := setting(t, "ORACLE_TRACE", 0); sum.states < hours*240; i++ {
		g := generator{rand.New(rand.NewPCG(uint64(seed)+1<<32, uint64(i)))}
		synctest.Test(t, func(t *testing.T) { runTrace(t, g, version, i, long, &sum) })
		if t.Failed() {
			return
		}
	}
	sum.report(t, version)
}

// edit writes another spec, or part of one, and whose time it is in
// managedFields; some edits leave the spec as it is.
func (tr *trace) edit(t *testing.T, g generator) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	api := tr.client.AutoscalingV2().HorizontalPodAutoscalers(namespace)
	object, err := api.Get(context.Background(), "h", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object = object.DeepCopy()
	other := g.hpa()
	switch g.IntN(5) {
	case 0:
		object.Spec = other.Spec
	case 1:
		object.Spec.MinReplicas, object.Spec.MaxReplicas = other.Spec.MinReplicas, other.Spec.MaxReplicas
	case 2, 3:
		object.Spec.Behavior = other.Spec.Behavior
	}
	object.ManagedFields = written(time.Now())
	if object, err = api.Update(context.Background(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The controller's informer must see it before the next sync.
	time.Sleep(time.Second)
	return object
}

// written is a record of one write of the spec, in whole seconds.
func written(at time.Time) []metav1.ManagedFieldsEntry {
	second := metav1.NewTime(at.Truncate(time.Second))
	return []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: &second}}
}
