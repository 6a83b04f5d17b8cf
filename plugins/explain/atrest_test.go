package explain

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

var readAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func before(seconds int) time.Time { return readAt.Add(-time.Duration(seconds) * time.Second) }

func podReady(created, ready int, yes corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(before(created))},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: yes, LastTransitionTime: metav1.NewTime(before(ready))}}},
	}
}

// TestAtSync: objects are read at different moments, after the sync. What has
// changed since is a bound, whatever it is now.
func TestAtSync(t *testing.T) {
	settled := podReady(600, 500, corev1.ConditionTrue)
	tests := map[string]struct {
		// sync and changed are how many seconds ago the status and the workload
		// were last written; 0 is never.
		sync, changed int
		status        int32
		pods          []corev1.Pod
		want, ready   hpa.Range
	}{
		"nothing says when":                 {0, 0, 2, nil, hpa.Exactly(2), hpa.Exactly(2)},
		"at rest":                           {0, 60, 2, nil, hpa.Exactly(2), hpa.Exactly(2)},
		"changed within a period":           {0, 10, 2, nil, hpa.Range{Low: 1, High: 7}, hpa.Range{High: 7}},
		"changed just before":               {0, 19, 2, nil, hpa.Exactly(2), hpa.Exactly(2)},
		"the status is newer":               {5, 10, 2, nil, hpa.Exactly(2), hpa.Exactly(2)},
		"the status may have begun earlier": {5, 8, 2, nil, hpa.Range{Low: 1, High: 7}, hpa.Range{High: 7}},
		"on its way":                        {0, 60, 3, nil, hpa.Range{Low: 2, High: 3}, hpa.Range{High: 6}},
		"pods at rest":                      {0, 60, 2, []corev1.Pod{settled, settled}, hpa.Exactly(2), hpa.Exactly(2)},
		"one became Ready":                  {0, 60, 2, []corev1.Pod{settled, podReady(600, 5, corev1.ConditionTrue)}, hpa.Exactly(2), hpa.Range{Low: 1, High: 6}},
		"one may have ended":                {0, 40, 2, []corev1.Pod{settled, settled}, hpa.Exactly(2), hpa.Range{Low: 2, High: 6}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 6}}
			object.Status.CurrentReplicas = 2
			if test.sync > 0 {
				at := metav1.NewTime(before(test.sync))
				object.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "status", Time: &at}}
			}
			workload := &chain.Workload{Spec: 2, Status: test.status, Ready: new(int32(2)), Surge: 1}
			if test.changed > 0 {
				workload.Changed = before(test.changed)
			}
			link := chain.Chain{HPA: object, Workload: workload, Pods: test.pods}
			status, ready := replicasAtSync(link, readSince(readAt, readAt, 15*time.Second))
			if status != test.want || ready != test.ready {
				t.Errorf("status %v, want %v; ready %v, want %v", status, test.want, ready, test.ready)
			}
		})
	}
}

// TestStale: before 1.37 only time tells whether a sync has seen an edit.
func TestStale(t *testing.T) {
	tests := map[string]struct {
		edited, synced       int
		generation, observed int64
		want                 bool
	}{
		"long ago":                     {edited: 60, want: false},
		"within a period":              {edited: 10, want: true},
		"and synced since":             {edited: 10, synced: 2, want: false},
		"the controller says so":       {edited: 60, generation: 3, observed: 2, want: true},
		"the controller says it knows": {edited: 1, generation: 3, observed: 3, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewTime(before(test.edited))
			object := &autoscalingv2.HorizontalPodAutoscaler{}
			object.Generation = test.generation
			object.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at}}
			if test.synced > 0 {
				at := metav1.NewTime(before(test.synced))
				object.ManagedFields = append(object.ManagedFields, metav1.ManagedFieldsEntry{Subresource: "status", Time: &at})
			}
			if test.observed > 0 {
				object.Status.ObservedGeneration = &test.observed
			}
			if got := stale(chain.Chain{HPA: object}, readSince(readAt, readAt, 15*time.Second)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
