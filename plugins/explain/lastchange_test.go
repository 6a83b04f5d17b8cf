package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// minute is a moment of the tests' hour.
func minute(n int) time.Time { return time.Date(2026, 11, 30, 12, n, 0, 0, time.UTC) }

func eventOf(kind, reason, message string, at int) corev1.Event {
	return corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind}, Type: "Normal", Reason: reason, Message: message, LastTimestamp: metav1.Time{Time: minute(at)}}
}

func scaledHPA(at int) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{Status: autoscalingv2.HorizontalPodAutoscalerStatus{LastScaleTime: &metav1.Time{Time: minute(at)}}}
}

func sized(size int32, writer *chain.Writer) *chain.Workload {
	return &chain.Workload{Owned: chain.Owned{Ref: chain.Ref{Kind: "Deployment"}}, Spec: size, Writer: writer}
}

// TestLastChange: the newest proven change wins, and who made it is what the
// evidence says, or unknown.
func TestLastChange(t *testing.T) {
	rescaled := []corev1.Event{eventOf("HorizontalPodAutoscaler", "SuccessfulRescale", "New size: 2; reason: All metrics below target", 10)}
	followed := func(from, to, at int) corev1.Event {
		return eventOf("Deployment", "ScalingReplicaSet", fmt.Sprintf("Scaled replica set d-1 from %d to %d", from, to), at)
	}
	deactivated := eventOf("ScaledObject", "KEDAScaleTargetDeactivated", "Deactivated apps/v1.Deployment w/d from 5 to 0", 20)
	failed := eventOf("ScaledObject", "KEDAScaleTargetDeactivationFailed", "Failed to deactivate apps/v1.Deployment w/d from 5 to 0", 20)
	failed.Type = "Warning"
	scale := func(manager string, at int) *chain.Writer {
		w := &chain.Writer{Manager: manager, Subresource: "scale"}
		if at > 0 {
			w.Time = minute(at)
		}
		return w
	}
	tests := map[string]struct {
		link chain.Chain
		want string
	}{
		"nothing is told":             {chain.Chain{Workload: sized(3, nil)}, "none"},
		"the HPA":                     {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Workload: sized(2, scale("kube-controller-manager", 10))}, "12:10 the HPA -> 2"},
		"the HPA, without its events": {chain.Chain{HPA: scaledHPA(10), Workload: sized(2, scale("kube-controller-manager", 0))}, "12:10 the HPA -> 2"},
		"the HPA, hidden fields":      {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Workload: sized(2, nil)}, "12:10 the HPA -> 2"},
		"KEDA after the HPA":          {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Related: []corev1.Event{deactivated}, Workload: sized(0, scale("keda-operator", 20))}, "12:20 KEDA -> 0"},
		"KEDA, hidden fields":         {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Related: []corev1.Event{deactivated}, Workload: sized(0, nil)}, "12:20 KEDA -> 0"},
		"KEDA that failed":            {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Related: []corev1.Event{failed}, Workload: sized(2, scale("kube-controller-manager", 10))}, "12:10 the HPA -> 2"},
		"KEDA's paused-replicas":      {chain.Chain{Related: []corev1.Event{followed(1, 3, 25)}, Workload: sized(3, scale("keda-operator", 0))}, "12:25 KEDA -> 3"},
		"kubectl scale, with a time":  {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Workload: sized(5, scale("kubectl", 30))}, "12:30 kubectl -> 5"},
		"kubectl scale, without one":  {chain.Chain{Related: []corev1.Event{followed(3, 1, 5), followed(1, 5, 31)}, Workload: sized(5, scale("kubectl", 0))}, "12:31 kubectl -> 5"},
		"kubectl scale, no events":    {chain.Chain{Workload: sized(5, scale("kubectl", 0))}, "? kubectl -> 5"},
		"amid a rollout": {chain.Chain{Related: []corev1.Event{followed(1, 5, 31), eventOf("Deployment", "ScalingReplicaSet", "Scaled replica set d-2 from 1 to 0", 30)},
			Workload: sized(5, scale("kubectl", 0))}, "? kubectl -> 5"},
		"somebody, hidden fields":     {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Workload: sized(0, nil)}, "? unknown -> 0"},
		"an HPA that is at zero":      {chain.Chain{HPA: scaledHPA(10), Workload: sized(0, nil)}, "? unknown -> 0"},
		"told by the ReplicaSet only": {chain.Chain{Related: []corev1.Event{followed(1, 4, 31)}, Workload: sized(4, nil)}, "12:31 unknown -> 4"},
		"a new Deployment":            {chain.Chain{Related: []corev1.Event{followed(0, 4, 31)}, Workload: sized(4, nil)}, "none"},
		"somebody after the HPA":      {chain.Chain{HPA: scaledHPA(10), Related: []corev1.Event{followed(2, 4, 31)}, Workload: sized(4, nil)}, "12:31 unknown -> 4"},
		"a GitOps tool after":         {chain.Chain{HPA: scaledHPA(10), Events: rescaled, Workload: sized(3, &chain.Writer{Manager: "argocd-controller", Time: minute(40)})}, "12:40 Argo CD -> 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := "none"
			if change := lastChangeOf(test.link); change != nil {
				at, by := "?", "unknown"
				if change.Time != nil {
					at = change.Time.Format("15:04")
				}
				if change.By != "" {
					by = actor(change.By)
				}
				if (change.By == "") != strings.Contains(change.Reason, "managedFields") {
					t.Errorf("reason %q", change.Reason)
				}
				got = fmt.Sprintf("%s %s -> %s", at, by, countText(change.To))
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestHistoryOfChanges: a change that has no event is told all the same, one
// that failed is no change, and what changes no size is left out.
func TestHistoryOfChanges(t *testing.T) {
	failed := eventOf("ScaledObject", "KEDAScaleTargetDeactivationFailed", "Failed to deactivate from 5 to 0", 20)
	failed.Type = "Warning"
	link := chain.Chain{
		HPA: scaledHPA(10), Workload: sized(5, &chain.Writer{Manager: "kubectl", Subresource: "scale", Time: minute(30)}),
		Events:  []corev1.Event{eventOf("HorizontalPodAutoscaler", "SuccessfulRescale", "New size: 3; reason: ", 15)},
		Related: []corev1.Event{failed, eventOf("ScaledObject", "KEDAScalersStarted", "Scaler prometheus is built.", 21)},
	}
	var got []string
	for _, e := range historyOf(link, minute(59)) {
		if e.Text == "" {
			t.Errorf("no text: %+v", e)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.By, stepText(e))))
	}
	want := "rescale HPA, rescale HPA -> 3, problem KEDA, write kubectl -> 5"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %v", got)
	}
	// Without rights on events lastScaleTime is still there.
	if history := historyOf(chain.Chain{HPA: scaledHPA(10), Workload: sized(2, nil)}, minute(59)); len(history) != 1 || history[0].Kind != record.HistoryRescale {
		t.Errorf("got %+v", history)
	}
}
