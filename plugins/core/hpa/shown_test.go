package hpa

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// published is the metric as the HPA's status shows it: an average, no samples.
func published(metric Metric, average int64, percent ...int32) Metric {
	metric.Seen = Observation{State: Seen, Average: &average}
	if len(percent) > 0 {
		metric.Seen.Utilization = &percent[0]
	}
	return metric
}

func complete(metric Metric) Metric {
	metric.Seen.Complete = true
	return metric
}

// TestProposalsFromStatus: what an HPA and its pods say without any sample.
func TestProposalsFromStatus(t *testing.T) {
	unseen := func(in *Input) { in.Pods = nil }
	starting := append(pods(3), pod("d", began(time.Minute, time.Second, corev1.ConditionFalse)))
	tests := map[string]struct {
		in     Input
		want   Range
		reason ProposalReason
	}{
		"within the tolerance whatever the pods": {with(on(pods(4), published(cpu(50), 270, 54)), unseen), Exactly(4), WithinTolerance},
		"the pods are not known":                 {with(on(pods(4), published(cpu(50), 300, 60)), unseen), AnyCount(), PodsUnknown},
		"every pod had a sample":                 {on(pods(4), complete(published(cpu(50), 300, 60))), Exactly(5), AboveTarget},
		"some may have had none":                 {on(pods(4), published(cpu(50), 300, 60)), Range{4, 5}, PodsUncertain},
		"down, every pod had one":                {on(pods(4), complete(published(cpu(50), 100, 20))), Exactly(2), BelowTarget},
		"down, some may have had none":           {on(pods(4), published(cpu(50), 100, 20)), Range{2, 4}, PodsUncertain},
		"the missing ones make no difference":    {on(pods(1), published(perPod(100), 250)), Exactly(3), AboveTarget},
		"a starting pod counts as idle":          {on(starting, complete(published(cpu(50), 500, 100))), Exactly(6), AboveTarget},
		"kubernetes#78761 from the status":       {on(pods(4), complete(published(memory(100), 800<<30, 80))), Exactly(4), BelowTarget},
		"autoscaler#1741 from the status":        {on(pods(3), published(memory(50), 460<<30, 46)), Exactly(3), WithinTolerance},
		"no pod can have had a sample":           {on(pods(2, phase(corev1.PodPending)), published(perPod(100), 250)), AnyCount(), PodsUnknown},
		"a pod without a request was not there":  {on(pods(2, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }), published(cpu(50), 500, 100)), AnyCount(), PodsUnknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.in).Proposals[0]
			if got.Count != test.want || got.Reason != test.reason {
				t.Errorf("got %v %s (ratio %v, pods %+v), want %v %s", got.Count, got.Reason, got.Ratio, got.Groups, test.want, test.reason)
			}
		})
	}
}

// TestEdgesOfPodMetrics: the averages at which the size changes, for the pods
// that run.
func TestEdgesOfPodMetrics(t *testing.T) {
	tests := map[string]struct {
		in          Input
		add, remove *int64
	}{
		"utilization":        {on(pods(4), published(cpu(50), 250, 50)), ptr(int64(56_000)), ptr(int64(37_000))},
		"plain value":        {on(pods(4), published(perPod(100), 100)), ptr(int64(111)), ptr(int64(75))},
		"one pod":            {on(pods(1), published(cpu(80), 400, 80)), ptr(int64(89_000)), nil},
		"a pod starts":       {on(pods(4, began(time.Minute, time.Second, corev1.ConditionFalse)), published(cpu(50), 250, 50)), nil, nil},
		"pods not known":     {with(on(pods(4), published(cpu(50), 250, 50)), func(in *Input) { in.Pods = nil }), nil, nil},
		"up to 1.32 at 55 %": {with(on(pods(4), published(cpu(50), 250, 50)), func(in *Input) { in.Version = Version{1, 32} }), ptr(int64(55_000)), ptr(int64(37_000))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Edges{Add: test.add, Remove: test.remove}, Decide(test.in).Proposals[0].Edges); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// randomPods draws pods in every state, and samples for most of them.
func randomPods(g *rand.Rand, metric *Metric) []corev1.Pod {
	list := []corev1.Pod{}
	metric.Seen = Observation{State: Seen, Samples: map[string]Sample{}}
	level := g.Float64() * 2
	for i := range g.IntN(9) {
		p := pod(string(rune('a' + i)))
		if g.IntN(3) == 0 {
			p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown}[g.IntN(4)]
		}
		if g.IntN(3) == 0 {
			ready := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[g.IntN(2)]
			ago := time.Duration(g.IntN(400)) * time.Second
			began(ago, ago-time.Duration(g.IntN(1+int(ago.Seconds())))*time.Second, ready)(&p)
		}
		if g.IntN(9) == 0 {
			p.DeletionTimestamp = &metav1.Time{Time: start}
		}
		if g.IntN(3) == 0 {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse([]string{"7m", "100m", "3"}[g.IntN(3)])
		}
		list = append(list, p)
		if g.IntN(5) > 0 {
			metric.Seen.Samples[p.Name] = Sample{Milli: int64(level * 500 * (0.5 + g.Float64())), Time: start.Add(-time.Duration(g.IntN(60)) * time.Second), Window: 20 * time.Second}
		}
	}
	return list
}

// TestStatusBoundsContainSamples: in every version, what the status and the
// pods say contains what the samples say.
func TestStatusBoundsContainSamples(t *testing.T) {
	exact, all := 0, 0
	for seed := range uint64(20_000) {
		g := rand.New(rand.NewPCG(seed, 1))
		metric := []Metric{cpu(50), cpu(130), perPod(500), sampled(Resource, "cpu", AverageValue, 333)}[g.IntN(4)]
		list := randomPods(g, &metric)
		in := with(on(list, metric), atSize(int32(1+g.IntN(9))))
		in.Version = Version{1, 27 + g.IntN(12)}
		truth := Decide(in).Proposals[0]
		if truth.Reason == MetricFailed {
			continue
		}
		all++
		shownOnly := metric
		shownOnly.Seen = Observation{State: Seen, Average: truth.Shown.Average, Utilization: truth.Shown.Utilization}
		for _, complete := range []bool{false, truth.Groups.Missing == Exactly(0)} {
			shownOnly.Seen.Complete = complete
			in.Metrics = []Metric{shownOnly}
			got := Decide(in).Proposals[0]
			if !got.Count.Contains(truth.Count.Low) || got.Reason == PodsUnknown {
				t.Fatalf("seed %d, %s: %v %s (%+v, shown %+v), but the samples say %v (%+v)", seed, in.Version, got.Count, got.Reason, got.Groups, truth.Shown, truth.Count, truth.Groups)
			}
			if got.Count.Exact() {
				exact++
			}
		}
	}
	if all < 10_000 || exact < all/2 {
		t.Errorf("%d proposals, %d of twice as many bounds are exact", all, exact)
	}
}
