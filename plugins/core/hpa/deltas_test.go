package hpa

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ago(seconds int) time.Time { return start.Add(-time.Duration(seconds) * time.Second) }

// rose and fell are events of a rescale to a size.
func rose(seconds int, size int32) SizeEvent {
	return SizeEvent{Time: ago(seconds), Count: 1, Size: size, Reason: "s0 above target"}
}

func fell(seconds int, size int32) SizeEvent {
	return SizeEvent{Time: ago(seconds), Count: 1, Size: size, Reason: "All metrics below target"}
}

func rules(policies ...Policy) Rules { return Rules{Select: SelectMax, Policies: policies} }

func TestDeltas(t *testing.T) {
	minute := time.Minute
	onePod := &Behavior{Up: rules(Policy{PodsPolicy, 1, minute}), Down: rules(Policy{PodsPolicy, 1, minute})}
	double := &Behavior{Up: rules(Policy{PercentPolicy, 100, minute}), Down: rules(Policy{PercentPolicy, 50, minute})}
	manyPods := &Behavior{Up: rules(Policy{PodsPolicy, 50, minute}), Down: rules(Policy{PodsPolicy, 50, minute})}
	tests := map[string]struct {
		behavior *Behavior
		events   []SizeEvent
		// edited is how long ago the HPA was edited, in seconds.
		edited   int
		up, down []Range
	}{
		"by direction only":   {onePod, []SizeEvent{rose(20, 4)}, 0, []Range{{0, 4}}, nil},
		"by range too":        {manyPods, []SizeEvent{rose(20, 4)}, 3600, []Range{{1, 3}}, nil},
		"a policy of one pod": {onePod, []SizeEvent{rose(20, 4)}, 3600, []Range{{1, 1}}, nil},
		"one pod down":        {onePod, []SizeEvent{fell(20, 4)}, 3600, nil, []Range{{1, 1}}},
		"at most doubled":     {double, []SizeEvent{rose(20, 5)}, 3600, []Range{{1, 2}}, nil},
		"at most halved":      {double, []SizeEvent{fell(20, 2)}, 3600, nil, []Range{{1, 3}}},
		// kubernetes#108354: what went down within the period may come up again.
		"a step the other way allows more": {onePod, []SizeEvent{fell(40, 2), rose(20, 4)}, 3600, []Range{{1, 2}}, []Range{{1, 1}}},
		"edited since":                     {onePod, []SizeEvent{rose(20, 4)}, 10, []Range{{0, 4}}, nil},
		"edited just before":               {onePod, []SizeEvent{rose(20, 4)}, 21, []Range{{0, 4}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := at(4)
			in.Min, in.Max, in.Behavior, in.Slack, in.MemorySince = 1, 20, test.behavior, 15*time.Second, new(ago(7200))
			o := Observed{LastScale: new(test.events[len(test.events)-1].Time)}
			if test.edited > 0 {
				in.SpecSince = new(ago(test.edited))
			}
			known := in.KnownRescales(test.events, o)
			if known == nil {
				t.Fatal("nothing is known")
			}
			if diff := cmp.Diff(test.up, ranges(known.Up)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.down, ranges(known.Down)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func ranges(rescales []Rescale) (all []Range) {
	for _, r := range rescales {
		all = append(all, r.Delta)
	}
	return all
}

func TestSizesBefore(t *testing.T) {
	step := func(seconds int, set string, from, to int32) SizeStep {
		return SizeStep{Time: ago(seconds), Count: 1, Set: set, From: from, To: to}
	}
	merged := step(20, "a", 2, 4)
	merged.Count = 2
	tests := map[string]struct {
		steps []SizeStep
		want  *int32
	}{
		"followed at once":                {[]SizeStep{step(20, "a", 2, 4)}, new(int32(2))},
		"followed in the next second":     {[]SizeStep{step(19, "a", 2, 4)}, new(int32(2))},
		"at rest before":                  {[]SizeStep{step(90, "a", 1, 2), step(20, "a", 2, 4)}, new(int32(2))},
		"somebody else wrote in between":  {[]SizeStep{step(90, "a", 1, 2), step(40, "a", 2, 3), step(20, "a", 3, 4)}, new(int32(3))},
		"somebody else wrote just before": {[]SizeStep{step(21, "a", 2, 3), step(20, "a", 3, 4)}, nil},
		"somebody else wrote just after":  {[]SizeStep{step(20, "a", 2, 4), step(19, "a", 4, 5)}, nil},
		"a rollout: another ReplicaSet":   {[]SizeStep{step(60, "b", 0, 1), step(20, "a", 2, 4)}, nil},
		"a step was lost":                 {[]SizeStep{step(90, "a", 1, 2), step(20, "a", 3, 4)}, nil},
		"merged":                          {[]SizeStep{merged}, nil},
		"ends elsewhere":                  {[]SizeStep{step(20, "a", 2, 5)}, nil},
		"long after":                      {[]SizeStep{step(10, "a", 2, 4)}, nil},
		"nothing told":                    {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events := []SizeEvent{rose(20, 4)}
			got := SizesBefore(events, test.steps)[0].Before
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if events[0].Before != nil {
				t.Error("the events that were given are changed")
			}
		})
	}
}

func TestHeldBy(t *testing.T) {
	tests := map[string]struct {
		able    AbleReason
		limited LimitReason
		// status and leader are how long ago, in seconds; -1 is unknown.
		status, leader int
		want           time.Time
	}{
		"unchanged for a minute":            {ScaleDownStabilized, DesiredWithinRange, 60, 3600, ago(59)},
		"up too":                            {ScaleUpStabilized, DesiredWithinRange, 60, 3600, ago(59)},
		"changed just now":                  {ScaleDownStabilized, DesiredWithinRange, 0, 3600, start},
		"the leader is newer":               {ScaleDownStabilized, DesiredWithinRange, 60, 30, start},
		"the leader is not known":           {ScaleDownStabilized, DesiredWithinRange, 60, -1, start},
		"no managed fields":                 {ScaleDownStabilized, DesiredWithinRange, -1, 3600, start},
		"a limit made the size":             {ScaleDownStabilized, ScaleDownLimit, 60, 3600, start},
		"nothing holds it":                  {ReadyForNewScale, DesiredWithinRange, 60, 3600, start},
		"a rescale hides what held it last": {SucceededRescale, DesiredWithinRange, 60, 3600, start},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, o := at(4), Observed{Able: string(test.able), Limited: string(test.limited)}
			if test.status >= 0 {
				o.statusTime = ago(test.status)
			}
			if test.leader >= 0 {
				in.MemorySince = new(ago(test.leader))
			}
			if got := in.HeldBy(o); !got.Equal(test.want) {
				t.Errorf("got %v", got.Sub(start))
			}
		})
	}
}
