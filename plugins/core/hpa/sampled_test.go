package hpa

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is one that runs, has been Ready for long and requests half a CPU and
// 1 GiB.
func pod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	started := metav1.NewTime(start.Add(-time.Hour))
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")},
		}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &started,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}},
		},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// pods are n of them, a, b, c and so on.
func pods(n int, changes ...func(*corev1.Pod)) []corev1.Pod {
	list := []corev1.Pod{}
	for i := range n {
		list = append(list, pod(string(rune('a'+i)), changes...))
	}
	return list
}

func phase(to corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = to }
}

// began is a pod that started some time ago and whose Ready has the status for
// some time.
func began(ago, since time.Duration, ready corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		started := metav1.NewTime(start.Add(-ago))
		p.Status.StartTime = &started
		p.Status.Conditions[0].Status, p.Status.Conditions[0].LastTransitionTime = ready, metav1.NewTime(start.Add(-since))
	}
}

// sampled is a metric of pods with a usage for each of a, b, c and so on; -1 is
// none.
func sampled(kind MetricType, name string, target TargetType, milli int64, usage ...int64) Metric {
	metric := Metric{Type: kind, Name: name, Target: target, TargetMilli: milli, Seen: Observation{State: Seen, Samples: map[string]Sample{}}}
	for i, use := range usage {
		if use >= 0 {
			metric.Seen.Samples[string(rune('a'+i))] = Sample{Milli: use, Time: start.Add(-20 * time.Second), Window: 15 * time.Second}
		}
	}
	return metric
}

func cpu(percent int64, usage ...int64) Metric {
	return sampled(Resource, "cpu", Utilization, percent, usage...)
}

// memory takes percents of the request of 1 GiB.
func memory(percent int64, usedPercent ...int64) Metric {
	usage := make([]int64, len(usedPercent))
	for i, used := range usedPercent {
		usage[i] = used * (1000 << 30) / 100
	}
	return sampled(Resource, "memory", Utilization, percent, usage...)
}

func perPod(target int64, usage ...int64) Metric {
	return sampled(Pods, "requests", AverageValue, target, usage...)
}

func on(pods []corev1.Pod, metrics ...Metric) Input {
	in := at(int32(len(pods)), metrics...)
	in.Pods = pods
	return in
}

// TestPodMetrics holds the numbers of public reports, and those that each rule
// gives.
func TestPodMetrics(t *testing.T) {
	surge := append(pods(4), pod("e"))
	tests := map[string]struct {
		in     Input
		want   int32
		reason ProposalReason
	}{
		"kubernetes#78761 0.8 of four rounds up to four": {on(pods(4), memory(100, 80, 80, 80, 80)), 4, BelowTarget},
		"kubernetes#78761 three quarters give it back":   {on(pods(4), memory(100, 75, 75, 75, 75)), 3, BelowTarget},
		"autoscaler#1741 memory of 46 of 50 holds":       {on(pods(3), memory(50, 46, 46, 46)), 3, WithinTolerance},
		"autoscaler#1741 no CPU asks for none":           {on(pods(3), cpu(50, 0, 0, 0)), 0, BelowTarget},
		"kubernetes#115586 72 of 65 adds one":            {on(pods(2), cpu(65, 360, 360)), 3, AboveTarget},
		"kubernetes#115586 70 of 65 holds":               {on(pods(2), cpu(65, 350, 350)), 2, WithinTolerance},
		"kubernetes#108354 twice the target":             {on(pods(4), cpu(5, 50, 50, 50, 50)), 8, AboveTarget},

		// A surge pod without a sample counts as idle, and as a pod: more pods
		// than the spec has are multiplied.
		"kubernetes#90461 the surge dampens":          {with(on(surge, perPod(100, 200, 200, 200, 200, -1)), atSize(4)), 8, AboveTarget},
		"kubernetes#84142 memory on a surge":          {with(on(surge, memory(50, 60, 60, 60, 60, -1)), atSize(4)), 4, HeldByPods},
		"kubernetes#98914 a surge within its ratio":   {with(on(surge, perPod(100, 120, 120, 120, 120, -1)), atSize(4)), 4, HeldByPods},
		"a pod without a sample may be at its target": {on(pods(4), perPod(100, 20, 20, 20, -1)), 2, BelowTarget},
		"a missing pod takes all of its request":      {on(pods(4), cpu(80, 100, 100, 100, -1)), 2, BelowTarget},
		"or the target where that is more":            {on(pods(4), cpu(150, 500, 500, 500, -1)), 3, BelowTarget},
		"the fill turns the direction":                {on(pods(2), cpu(60, 250, -1)), 2, HeldByPods},

		"a utilization is cut to whole percents": {on(pods(1), cpu(10, 59)), 1, WithinTolerance},
		"a plain average is cut too":             {on(pods(2), perPod(10, 11, 12)), 2, WithinTolerance},

		"pending pods only dampen the way up":        {with(on(append(pods(3), pod("d", phase(corev1.PodPending))), perPod(100, 150, 150, 150)), atSize(4)), 5, AboveTarget},
		"pending pods are not there on the way down": {with(on(append(pods(3), pod("d", phase(corev1.PodPending))), perPod(100, 50, 50, 50)), atSize(4)), 2, BelowTarget},
		"failed pods are not there":                  {with(on(append(pods(3), pod("d", phase(corev1.PodFailed))), perPod(100, 150, 150, 150, 900)), atSize(3)), 5, AboveTarget},
		"terminating pods are not there":             {with(on(append(pods(3), pod("d", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} })), perPod(100, 150, 150, 150, 900)), atSize(3)), 5, AboveTarget},
		"succeeded pods count up to 1.37":            {with(on(append(pods(3), pod("d", phase(corev1.PodSucceeded))), perPod(100, 150, 150, 150, 0)), atSize(3)), 5, AboveTarget},
		"not Ready pods count for other metrics":     {on(pods(2, began(time.Hour, time.Hour, corev1.ConditionFalse)), perPod(100, 200, 200)), 4, AboveTarget},
		"samples of pods that are gone count":        {on(pods(2), perPod(100, 100, 100, 400)), 4, AboveTarget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.in).Proposals[0]
			if got.Count != Exactly(test.want) || got.Reason != test.reason {
				t.Errorf("got %v %s %s (ratio %v, pods %+v), want %d %s", got.Count, got.Reason, got.Detail, got.Ratio, got.Groups, test.want, test.reason)
			}
		})
	}
}

func atSize(n int32) func(*Input) {
	return func(in *Input) { in.Replicas.Spec, in.Replicas.Status = n, Exactly(n) }
}

// TestStartingPods: for CPU, pods that are starting count as idle on the way
// up and not at all on the way down. Two pods at twice their target ask for
// four; with a third one that starts, its zero makes it ceil(4/3 * 3).
func TestStartingPods(t *testing.T) {
	const isTrue, isFalse = corev1.ConditionTrue, corev1.ConditionFalse
	tests := map[string]struct {
		third   func(*corev1.Pod)
		unready int32
	}{
		"long Ready":                                 {began(time.Hour, time.Hour, isTrue), 0},
		"new and not Ready":                          {began(2*time.Minute, time.Minute, isFalse), 1},
		"new, Ready before the window":               {began(2*time.Minute, 35*time.Second, isTrue), 0},
		"new, Ready within the window":               {began(2*time.Minute, 34*time.Second, isTrue), 1},
		"as old as the period":                       {began(5*time.Minute, 10*time.Second, isTrue), 0},
		"old, was Ready, now is not":                 {began(time.Hour, time.Minute, isFalse), 0},
		"old, never became Ready":                    {began(time.Hour, time.Hour-29*time.Second, isFalse), 1},
		"old, not Ready since the end of the delay":  {began(time.Hour, time.Hour-30*time.Second, isFalse), 0},
		"no condition":                               {func(p *corev1.Pod) { p.Status.Conditions = nil }, 1},
		"no start":                                   {func(p *corev1.Pod) { p.Status.StartTime = nil }, 1},
		"unknown readiness is not the same as False": {began(2*time.Minute, time.Minute, corev1.ConditionUnknown), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := Decide(on(append(pods(2), pod("c", test.third)), cpu(50, 500, 500, 500))).Proposals[0]
			if p.Groups.Unready != Exactly(test.unready) {
				t.Errorf("pods %+v, want %d unready", p.Groups, test.unready)
			}
			if want := map[int32]int32{0: 6, 1: 4}[test.unready]; p.Count != Exactly(want) {
				t.Errorf("proposes %v, want %d", p.Count, want)
			}
		})
	}
}

// TestVersionsOfPodMetrics: the changes of 1.27 to 1.38.
func TestVersionsOfPodMetrics(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always, Resources: p.Spec.Containers[0].Resources}}
	}
	own := func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	}
	container := cpu(50, 500, 500)
	container.Type, container.Container = ContainerResource, "main"
	absent := container
	absent.Container = "other"
	succeeded := append(pods(2), pod("c", phase(corev1.PodSucceeded)))
	tests := map[string]struct {
		in            Input
		since         int
		before, after string
	}{
		"ratio of one with a missing pod": {on(pods(4), perPod(100, 100, 100, -1, -1)), 28, "2", "4"},
		"sidecars request too":            {on(pods(2, sidecar), cpu(50, 500, 500)), 29, "4", "2"},
		"ten percent of tolerance":        {on(pods(10), cpu(50, 275, 275, 275, 275, 275, 275, 275, 275, 275, 275)), 33, "11", "10"},
		"requests of the pod":             {on(pods(2, own), cpu(50, 1250, 1250)), 34, "10", "2"},
		"a container goes before the pod": {on(pods(2, own), container), 34, "4", "4"},
		"an absent container":             {on(append(pods(1), pod("b", func(p *corev1.Pod) { p.Spec.Containers[0].Name = "other" })), absent), 35, "8", "pod a has no container other"},
		"succeeded pods":                  {with(on(succeeded, perPod(100, 200, 200, 200)), atSize(3)), 38, "6", "4"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for minor, want := range map[int]string{test.since - 1: test.before, test.since: test.after} {
				test.in.Version = Version{1, minor}
				p := Decide(test.in).Proposals[0]
				got := p.Count.String()
				if p.Reason == MetricFailed {
					got = p.Detail
				}
				if got != want {
					t.Errorf("1.%d: got %s, want %s (%+v)", minor, got, want, p.Groups)
				}
			}
		})
	}
}

// TestFailedPodMetrics: what makes the controller give up on a metric.
func TestFailedPodMetrics(t *testing.T) {
	bare := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }
	tests := map[string]struct {
		in     Input
		detail string
	}{
		"no pods":    {with(on(pods(0), perPod(100, 1)), atSize(2)), "the selector matches no pod"},
		"no samples": {on(pods(2), perPod(100)), "no pod has a sample that counts"},
		"all start":  {on(pods(2, phase(corev1.PodPending)), cpu(50, 1, 1)), "no pod has a sample that counts"},
		// Even one that terminates, and is ignored, must have a request.
		"a request is missing": {on(append(pods(2), pod("c", bare, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} })), cpu(50, 1, 1)), "container main of pod c requests no cpu"},
		"pod-level requests of another resource": {on(pods(1, bare, func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
		}), cpu(50, 1)), "pod a requests no cpu"},
		"a value of no pods": {with(on(pods(0), whole(90, 30)), atSize(2)), "the selector matches no pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.in)
			p := d.Proposals[0]
			if p.Reason != MetricFailed || !strings.HasPrefix(p.Detail, test.detail) {
				t.Errorf("got %v %s %q, want %q", p.Count, p.Reason, p.Detail, test.detail)
			}
			if want := ActiveReason(fmt.Sprintf("FailedGet%sMetric", p.Metric.Type)); d.Active != want || d.Blocking != AllFailed {
				t.Errorf("got %s, %s; want %s", d.Active, d.Blocking, want)
			}
		})
	}
}
