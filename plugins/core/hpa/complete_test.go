package hpa

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestIfEveryPodHadASample: the status of plain CPU and Pods HPAs gives bounds;
// the number that people expect is the one with a sample of every pod.
func TestIfEveryPodHadASample(t *testing.T) {
	starting := append(pods(3), pod("d", began(time.Minute, time.Second, corev1.ConditionFalse)))
	tests := map[string]struct {
		in    Input
		count Range
		want  *Complete
	}{
		"80 of 50 % on 4 pods":      {on(pods(4), published(cpu(50), 400, 80)), Range{4, 7}, &Complete{Exactly(7), 4, true}},
		"of pods that start":        {on(starting, published(cpu(50), 500, 100)), Range{4, 6}, &Complete{Exactly(6), 3, false}},
		"pods that nobody listed":   {with(on(pods(4), published(cpu(50), 400, 80)), func(in *Input) { in.Pods = nil }), AnyCount(), &Complete{Exactly(7), 4, true}},
		"within the tolerance":      {on(pods(4), published(cpu(50), 270, 54)), Exactly(4), nil},
		"samples that are complete": {on(pods(4), complete(published(cpu(50), 400, 80))), Exactly(7), nil},
		"pods that cannot be those": {on(pods(2, phase(corev1.PodPending)), published(perPod(100), 250)), AnyCount(), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.in).Proposals[0]
			if diff := cmp.Diff(test.want, got.Complete); diff != "" || got.Count != test.count {
				t.Errorf("count %v %s\n%s", got.Count, got.Reason, diff)
			}
		})
	}
}
