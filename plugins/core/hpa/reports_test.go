package hpa

import (
	"math"
	"testing"
	"time"
)

// TestReports are public reports of a size that nobody expected, and how the
// whole sync explains it. Those about one metric's arithmetic are in
// TestProposals and TestPodMetrics.
func TestReports(t *testing.T) {
	// What KEDA before 2.20 made of 0/0.
	const notANumber = math.MinInt64
	window := func(in *Input) { in.Behavior, in.History = seeds(), recommended(time.Minute, 6) }
	pods15s := func(in *Input) {
		in.Behavior = &Behavior{
			Up:   Rules{Window: ptr(time.Minute), Select: SelectMax, Policies: []Policy{{PodsPolicy, 2, 15 * time.Second}, {PercentPolicy, 10, 15 * time.Second}}},
			Down: seeds().Down,
		}
	}
	tests := map[string]struct {
		in      Input
		raw     Range
		desired int32
		reason  any
	}{
		// One metric fails; CPU is above its target, yet the size seems frozen.
		"kubernetes#109214 a broken metric does not block the way up": {with(on(pods(5), failing(), cpu(80, 445, 445, 445, 445, 445)), atSize(5)), Exactly(6), 6, ValidMetricFound},
		"kubernetes#109214 but the way down":                          {with(on(pods(5), failing(), cpu(80, 100, 100, 100, 100, 100)), atSize(5)), Exactly(2), 5, DownBlocked},
		"keda#6475 nothing answers for the metric, the size holds":    {at(5, failing()), AnyCount(), 5, AllFailed},
		"keda#6887 up by CPU while Prometheus is down":                {on(pods(2), failing(), cpu(50, 400, 400)), Exactly(4), 4, ValidMetricFound},

		"autoscaler#1741 memory holds what CPU would give back": {with(on(pods(3), memory(50, 46, 46, 46), cpu(50, 0, 0, 0)), func(in *Input) { in.Min = 2 }), Exactly(3), 3, WithinTolerance},
		"keda#4204 the policy is a ceiling, not a step":         {with(on(pods(2), cpu(65, 360, 360)), pods15s), Exactly(3), 3, DesiredWithinRange},
		"kubernetes#115586 within the tolerance":                {with(on(pods(2), cpu(65, 350, 350)), pods15s), Exactly(2), 2, WithinTolerance},
		"kubernetes#78761 rounding holds, not the tolerance":    {on(pods(4), memory(100, 80, 80, 80, 80)), Exactly(4), 4, BelowTarget},

		// The cooldown is for the way to zero; this window holds at the rest.
		"keda#804 the window holds, not the cooldown":     {with(at(6, external(0, 2000)), window), Exactly(0), 6, ScaleDownStabilized},
		"keda#737 and then the minimum":                   {with(at(3, external(0, 2000)), func(in *Input) { in.Min = 2 }), Exactly(0), 2, TooFewReplicas},
		"keda#8172 idle 1 below the minimum of 2":         {with(at(1, external(0, 2000)), func(in *Input) { in.Min = 2 }), AnyCount(), 2, BelowMin},
		"keda#2619 and the next sync puts it back":        {with(at(1, external(9000, 2000)), func(in *Input) { in.Min = 2 }), AnyCount(), 2, BelowMin},
		"keda#5572 a size set by hand returns":            {with(at(5, external(6000, 2000)), func(in *Input) { in.History = recommended(time.Minute, 8) }), Exactly(3), 8, ScaleDownStabilized},
		"keda#4578 with a behavior it does not":           {with(at(5, external(6000, 2000)), func(in *Input) { in.History, in.Behavior = recommended(time.Minute, 8), seeds() }), Exactly(3), 5, ScaleDownStabilized},
		"keda#3578 a thousand messages, four at first":    {at(1, external(1000_000, 5000)), Exactly(200), 4, ScaleUpLimit},
		"keda#7095 the schedule's 10 come in two steps":   {at(1, external(10_000, 1000)), Exactly(10), 4, ScaleUpLimit},
		"keda#2446 at zero no metric is looked at":        {at(0, cpu(50)), AnyCount(), 0, ScalingDisabled},
		"keda#7072 one composite of 4 of 4 holds":         {at(1, external(4000, 4000)), Exactly(1), 1, WithinTolerance},
		"keda#7475 not a number up to 1.33 scales in":     {with(at(4, external(notANumber, 2000)), func(in *Input) { in.Version = Version{1, 33} }), Exactly(0), 1, TooFewReplicas},
		"keda#7475 not a number since 1.34 scales out":    {at(4, external(notANumber, 2000)), Exactly(math.MaxInt32), 8, ScaleUpLimit},
		"mitodl/ol-infrastructure#5304 divided twice":     {at(4, external(12_000/4, 1000)), Exactly(3), 3, BelowTarget},
		"grafana/tempo#7376 the ratio never falls":        {at(20, whole(66_000, 50_000)), Exactly(27), 27, AboveTarget},
		"vllm-project/production-stack#903 no status":     {with(at(3, external(6000, 2000)), func(in *Input) { in.Replicas.Status = Exactly(0) }), Exactly(3), 3, NoReplicas},
		"volcano-sh/kthena#839 no selector":               {with(at(3, external(60_000, 2000)), func(in *Input) { in.Unselectable = InvalidSelector }), AnyCount(), 3, InvalidSelector},
		"two HPAs on one target stop both":                {with(at(3, external(60_000, 2000)), func(in *Input) { in.Unselectable = AmbiguousSelector }), AnyCount(), 3, AmbiguousSelector},
		"llm-d/llm-d#2466 zero is idle":                   {at(2, external(0, 1500)), Exactly(0), 1, TooFewReplicas},
		"llm-d/llm-d#2466 unknown was never evaluated":    {at(2, failing()), AnyCount(), 2, ActiveReason("FailedGetExternalMetric")},
		"keda#6145 the active test has no say above zero": {at(2, external(100, 2000)), Exactly(1), 1, DesiredWithinRange},
		"kubernetes#138505 a quota lowers the size":       {with(at(5, external(6000, 2000)), func(in *Input) { in.Replicas.Status = Exactly(3) }), Exactly(3), 3, WithinTolerance},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.in)
			if d.Raw != test.raw || d.Desired != Exactly(test.desired) || !hasReason(d, test.reason) {
				t.Errorf("got raw %v, desired %v, %s %s %s; want %v, %d, %v\n%+v", d.Raw, d.Desired, d.Path, d.Blocking, d.Active, test.raw, test.desired, test.reason, d.Proposals)
			}
		})
	}
}

// hasReason says whether some step of the decision has the reason.
func hasReason(d Decision, reason any) bool {
	switch reason := reason.(type) {
	case Path:
		return d.Path == reason
	case Blocking:
		return d.Blocking == reason
	case ActiveReason:
		return d.Active == reason
	case AbleReason:
		return d.Stabilization != nil && d.Stabilization.Reason == reason
	case LimitReason:
		return d.Limit != nil && d.Limit.Reason == reason
	case ProposalReason:
		return d.Proposals[0].Reason == reason
	}
	return false
}
