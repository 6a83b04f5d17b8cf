package hpa

import (
	"testing"
	"time"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// external is a metric with a known total and a target per replica.
func external(total, target int64) Metric {
	return Metric{Type: External, Name: "s0-prometheus", Target: AverageValue, TargetMilli: target, Seen: Observation{State: Seen, Total: &total}}
}

func whole(total, target int64) Metric {
	metric := external(total, target)
	metric.Target = Value
	return metric
}

func failing() Metric {
	metric := external(0, 2000)
	metric.Seen = Observation{State: Failed, Reason: "FailedGetExternalMetric"}
	return metric
}

// at is a workload at rest at a size, with nothing in the controller's memory.
func at(size int32, metrics ...Metric) Input {
	return Input{
		Version: Version{1, 37}, Now: start, Min: 1, Max: 100, Metrics: metrics,
		Replicas: Replicas{Spec: size, Status: Exactly(size), Ready: Exactly(size)},
		History:  &History{}, Rescales: &Rescales{},
	}
}

func with(in Input, change func(*Input)) Input {
	change(&in)
	return in
}

// TestProposals holds the numbers of public reports, and of the controller's
// own functions where a report gives none.
func TestProposals(t *testing.T) {
	tests := map[string]struct {
		in     Input
		want   int32
		reason ProposalReason
	}{
		// The boundary of exactly +10 % moved with 1.33: |1-1.1| is a little
		// more than 0.1 in floating point.
		"plus ten percent holds since 1.33":  {at(10, external(44000, 4000)), 10, WithinTolerance},
		"plus ten percent scales up to 1.32": {with(at(10, external(44000, 4000)), func(in *Input) { in.Version = Version{1, 32} }), 11, AboveTarget},
		"minus ten percent holds":            {at(10, external(36000, 4000)), 10, WithinTolerance},
		"minus ten percent holds up to 1.32": {with(at(10, external(36000, 4000)), func(in *Input) { in.Version = Version{1, 30} }), 10, WithinTolerance},

		"keda#1940 a percentage as a total":      {at(2, external(91000, 75000)), 2, BelowTarget},
		"keda#6549 9334m is 9.334":               {at(3, external(28002, 9000_000)), 1, BelowTarget},
		"keda#5263 88 of 89 is within tolerance": {at(88, external(89000, 1000)), 88, WithinTolerance},
		"keda#7398 stuck at 57 of 60":            {at(57, external(60000, 1000)), 57, WithinTolerance},
		"keda#5755 a latency divided by pods":    {at(1, external(45000, 30000)), 2, AboveTarget},
		"kv 0.80 of 0.75 adds nothing":           {at(1, external(800, 750)), 1, WithinTolerance},

		// kubernetes#138505: in tolerance the proposal is status.replicas, so a
		// surge raises the size and a quota lowers it.
		"kubernetes#138505 surge": {with(at(5, external(12000, 2000)), func(in *Input) { in.Replicas.Status = Exactly(6) }), 6, WithinTolerance},
		"kubernetes#138505 quota": {with(at(5, external(6000, 2000)), func(in *Input) { in.Replicas.Status = Exactly(3) }), 3, WithinTolerance},
		"no pod yet":              {with(at(1, external(5000, 2000)), func(in *Input) { in.Replicas.Status = Exactly(0) }), 3, NoReplicas},
		"no pod and no load":      {with(at(1, external(0, 2000)), func(in *Input) { in.Replicas.Status = Exactly(0) }), 0, NoReplicas},

		"value within":                         {at(4, whole(32000, 30000)), 4, WithinTolerance},
		"value above":                          {at(4, whole(45000, 30000)), 6, AboveTarget},
		"value with pods not ready":            {with(at(10, whole(60000, 30000)), func(in *Input) { in.Replicas.Ready = Exactly(4) }), 8, AboveTarget},
		"value without a ready pod":            {with(at(3, whole(60000, 30000)), func(in *Input) { in.Replicas.Ready = Exactly(0) }), 0, AboveTarget},
		"value rounds up on a float":           {at(25, whole(11000, 5000)), 56, AboveTarget},
		"grafana/tempo#7376 constant ratio":    {at(50, whole(66000, 50000)), 66, AboveTarget},
		"a negative sum counts as an overflow": {at(2, external(-1, 2000)), 1<<31 - 1, AboveTarget},
		"a negative sum up to 1.33":            {with(at(2, external(-1, 2000)), func(in *Input) { in.Version = Version{1, 33} }), 0, BelowTarget},
		"an impossible size is kept in int32":  {at(1, external(1<<60, 1)), 1<<31 - 1, AboveTarget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.in).Proposals[0]
			if got.Count != Exactly(test.want) || got.Reason != test.reason {
				t.Errorf("got %v %s, want %d %s", got.Count, got.Reason, test.want, test.reason)
			}
		})
	}
}

func TestCombine(t *testing.T) {
	tests := map[string]struct {
		in       Input
		raw      int32
		winner   int
		blocking Blocking
		desired  int32
	}{
		"largest wins":           {at(2, external(1000, 2000), external(9000, 2000)), 5, 1, NotBlocked, 4},
		"earlier wins a tie":     {at(2, external(9000, 2000), external(10000, 2000)), 5, 0, NotBlocked, 4},
		"last of zeros is named": {at(2, external(0, 2000), external(0, 2000)), 0, 1, NotBlocked, 1},
		"zero blocks no other":   {at(1, external(0, 2000), external(1000, 2000)), 1, 1, NotBlocked, 1},
		// keda#6887: one broken metric blocks the way down, not up.
		"keda#6887 down blocked":  {at(5, failing(), external(2000, 2000)), 1, NoWinner, DownBlocked, 5},
		"keda#6887 up works":      {at(2, failing(), external(6000, 2000)), 3, 1, NotBlocked, 3},
		"equal proposal proceeds": {at(3, failing(), external(6000, 2000)), 3, 1, NotBlocked, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.in)
			if d.Raw != Exactly(test.raw) || d.Winner != test.winner || d.Blocking != test.blocking || d.Desired != Exactly(test.desired) {
				t.Errorf("got raw %v, winner %d, %s, desired %v", d.Raw, d.Winner, d.Blocking, d.Desired)
			}
		})
	}
}

func TestAllFailed(t *testing.T) {
	d := Decide(at(4, failing(), failing()))
	if d.Blocking != AllFailed || d.Desired != Exactly(4) || d.Active != "FailedGetExternalMetric" || d.Stabilization != nil {
		t.Errorf("got %+v", d)
	}
}

func TestPaths(t *testing.T) {
	tests := map[string]struct {
		in      Input
		path    Path
		desired int32
	}{
		"above the maximum": {with(at(9, external(0, 2000)), func(in *Input) { in.Max = 6 }), AboveMax, 6},
		"below the minimum": {with(at(1, external(0, 2000)), func(in *Input) { in.Min = 3 }), BelowMin, 3},
		"zero":              {at(0, external(9000, 2000)), Disabled, 0},
		"zero by the HPA":   {with(at(0, external(9000, 2000)), func(in *Input) { in.ScaledToZero = true }), ByMetrics, 4},
		// kubernetes#110278: the minimum was raised while the size was zero.
		"kubernetes#110278 up to 1.35": {with(at(0, external(0, 2000)), func(in *Input) { in.Version, in.ScaledToZero = Version{1, 35}, true }), Disabled, 0},
		"kubernetes#110278 in 1.37":    {with(at(0, external(0, 2000)), func(in *Input) { in.ScaledToZero = true }), ByMetrics, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.in)
			if d.Path != test.path || d.Desired != Exactly(test.desired) {
				t.Errorf("got %s %v, want %s %d", d.Path, d.Desired, test.path, test.desired)
			}
		})
	}
}

func TestTolerancePerDirection(t *testing.T) {
	behavior := &Behavior{Up: Rules{Tolerance: ptr(0.5)}, Down: Rules{Tolerance: ptr(0.0)}}
	tests := map[string]struct {
		version  Version
		gate     *bool
		total    int64
		proposes int32
	}{
		"up tolerance holds":       {Version{1, 37}, nil, 14000, 10},
		"down tolerance of zero":   {Version{1, 37}, nil, 9900, 10},
		"down one percent":         {Version{1, 37}, nil, 8900, 9},
		"off by default in 1.34":   {Version{1, 34}, nil, 14000, 14},
		"on by gate in 1.34":       {Version{1, 34}, ptr(true), 14000, 10},
		"no such field up to 1.32": {Version{1, 32}, ptr(true), 14000, 14},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(10, external(test.total, 1000))
			in.Version, in.Behavior, in.Flags.ConfigurableTolerance = test.version, behavior, test.gate
			if got := in.propose(in.Metrics[0]).Count; got != Exactly(test.proposes) {
				t.Errorf("got %v, want %d", got, test.proposes)
			}
		})
	}
}
