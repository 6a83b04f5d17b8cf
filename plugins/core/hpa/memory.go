package hpa

import (
	"slices"
	"time"
)

// Remember returns what the controller knows after a sync that decided d and
// then wrote the size to: the memory for the next Input. The decision must
// have been made with everything known.
func Remember(d Decision, to int32) (*History, *Rescales) {
	return RememberAt(d, to, d.Input.Now)
}

// RememberAt is Remember where writing the size took until wrote, as it does
// after a conflict.
func RememberAt(d Decision, to int32, wrote time.Time) (*History, *Rescales) {
	in := d.Input
	var history History
	if in.History != nil {
		history.Recommendations = slices.Clone(in.History.Recommendations)
	}
	if d.Stabilization != nil {
		history.Recommendations = in.recommend(history.Recommendations, Recommendation{in.Now, d.Raw.Low})
	}
	var rescales Rescales
	if in.Rescales != nil {
		rescales = Rescales{Up: slices.Clone(in.Rescales.Up), Down: slices.Clone(in.Rescales.Down)}
	}
	// Without a behavior rescales are not noted.
	switch from := in.Replicas.Spec; {
	case in.Behavior == nil:
	case to > from:
		rescales.Up = note(rescales.Up, Rescale{Time: wrote, Delta: Exactly(to - from)}, in.Behavior.Up.longestPeriod())
	case to < from:
		rescales.Down = note(rescales.Down, Rescale{Time: wrote, Delta: Exactly(from - to)}, in.Behavior.Down.longestPeriod())
	}
	return &history, &rescales
}

// recommend stores a proposal in the place of the last one that is out of both
// windows, if there is one. The others stay: an edit that makes a window longer
// brings them back.
func (in Input) recommend(recommendations []Recommendation, next Recommendation) []Recommendation {
	up, down := in.windows()
	cutoff := in.Now.Add(-max(up, down))
	for i := len(recommendations) - 1; i >= 0; i-- {
		if recommendations[i].Time.Before(cutoff) {
			recommendations[i] = next
			return recommendations
		}
	}
	return append(recommendations, next)
}

// note stores a rescale in the place of one that no policy of its own direction
// looks at any more, if there is one. The other direction's policies may look
// further back: they lose it. So do those of a longer period after an edit.
func note(rescales []Rescale, rescale Rescale, longest time.Duration) []Rescale {
	cutoff := rescale.Time.Add(-longest)
	last := -1
	for i := range rescales {
		rescales[i].Outdated = rescales[i].Outdated || rescales[i].Time.Before(cutoff)
		if rescales[i].Outdated {
			last = i
		}
	}
	if last < 0 {
		return append(rescales, rescale)
	}
	rescales[last] = rescale
	return rescales
}

func (r Rules) longestPeriod() time.Duration {
	var longest time.Duration
	for _, policy := range r.Policies {
		longest = max(longest, policy.Period)
	}
	return longest
}
