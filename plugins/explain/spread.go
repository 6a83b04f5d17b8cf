package explain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// spreading is the load of pods that is taken to stay as it is in all, however
// many pods there are: an estimate, which settle needs to look ahead.
type spreading struct {
	// totals are by the index of the metric, in thousandths.
	totals map[int]int64
	like   corev1.Pod
}

// spreadOf sums the samples of the pods that stay. needed is false where no
// metric is one of pods; ok is false where their samples are not known.
func spreadOf(in hpa.Input) (s spreading, needed, ok bool) {
	s.totals = map[int]int64{}
	for i, metric := range in.Metrics {
		if metric.Type == hpa.External || metric.Type == hpa.Object || metric.Seen.State != hpa.Seen {
			continue
		}
		needed = true
		if metric.Seen.Samples == nil {
			return s, true, false
		}
		found := false
		for j := range in.Pods {
			sample, has := metric.Seen.Samples[in.Pods[j].Name]
			if !has || in.Pods[j].DeletionTimestamp != nil {
				continue
			}
			s.totals[i] += sample.Milli
			s.like, found = in.Pods[j], true
		}
		if !found {
			return s, true, false
		}
	}
	return s, needed, true
}

// over returns the input with the load spread over as many pods as there are,
// all of them like the one that was seen, and Ready for long.
func (s spreading) over(in hpa.Input) hpa.Input {
	size, long := int(in.Replicas.Spec), metav1.NewTime(in.Now.Add(-24*time.Hour))
	in.Pods, in.Metrics = make([]corev1.Pod, size), slices.Clone(in.Metrics)
	for i := range in.Pods {
		pod := s.like
		pod.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: pod.Namespace, Labels: pod.Labels}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &long, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: long}}}
		in.Pods[i] = pod
	}
	for index, total := range s.totals {
		seen := &in.Metrics[index].Seen
		seen.Samples, seen.Complete = map[string]hpa.Sample{}, true
		for i := range in.Pods {
			share := total / int64(size)
			if int64(i) < total%int64(size) {
				share++
			}
			seen.Samples[in.Pods[i].Name] = hpa.Sample{Milli: share, Time: in.Now}
		}
	}
	return in
}
