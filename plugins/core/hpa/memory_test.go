package hpa

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRememberRescales(t *testing.T) {
	ago := func(seconds int, delta int32) Rescale {
		return Rescale{Time: start.Add(-time.Duration(seconds) * time.Second), Delta: Exactly(delta)}
	}
	tests := map[string]struct {
		in   Input
		to   int32
		want Rescales
	}{
		"none":                                {with(at(4), func(in *Input) { in.Behavior = seeds() }), 4, Rescales{}},
		"up":                                  {with(at(4), func(in *Input) { in.Behavior = seeds() }), 6, Rescales{Up: []Rescale{ago(0, 2)}}},
		"down":                                {with(at(4), func(in *Input) { in.Behavior = seeds() }), 1, Rescales{Down: []Rescale{ago(0, 3)}}},
		"without a behavior nothing is noted": {at(4), 6, Rescales{}},
		// The policy up looks back 30 s: the older one makes room, although the
		// policy down would still look at it.
		"one out of its own period makes room": {with(at(4), func(in *Input) {
			in.Behavior, in.Rescales = seeds(), &Rescales{Up: []Rescale{ago(45, 1), ago(20, 1)}}
		}), 6, Rescales{Up: []Rescale{ago(0, 2), ago(20, 1)}}},
		"as old as the period stays": {with(at(4), func(in *Input) {
			in.Behavior, in.Rescales = seeds(), &Rescales{Up: []Rescale{ago(30, 1)}}
		}), 6, Rescales{Up: []Rescale{ago(30, 1), ago(0, 2)}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := Remember(Decide(test.in), test.to)
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRememberProposals(t *testing.T) {
	in := at(4, external(6000, 2000))
	in.History = &History{Recommendations: []Recommendation{{start.Add(-301 * time.Second), 9}, {start.Add(-300 * time.Second), 4}}}
	history, _ := Remember(Decide(in), 4)
	want := &History{Recommendations: []Recommendation{{start, 3}, {start.Add(-300 * time.Second), 4}}}
	if diff := cmp.Diff(want, history); diff != "" {
		t.Error(diff)
	}
	if len(in.History.Recommendations) != 2 {
		t.Error("the input's history was changed")
	}
	// A sync that stops early proposes nothing.
	blocked := at(4, failing())
	blocked.History = in.History
	history, _ = Remember(Decide(blocked), 4)
	if diff := cmp.Diff(in.History, history); diff != "" {
		t.Error(diff)
	}
}
