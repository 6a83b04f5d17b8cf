package hpa

import (
	"slices"
	"time"
)

// Remember returns what the controller knows after a sync that decided d and
// then wrote the size to: the memory for the next Input. The decision must
// have been made with everything known.
func Remember(d Decision, to int32) (*History, *Rescales) {
	in := d.Input
	var history History
	if in.History != nil {
		history.Recommendations = slices.Clone(in.History.Recommendations)
	}
	if d.Stabilization != nil {
		history.Recommendations = append(in.unexpired(history.Recommendations), Recommendation{in.Now, d.Raw.Low})
	}
	var rescales Rescales
	if in.Rescales != nil {
		rescales = Rescales{Up: slices.Clone(in.Rescales.Up), Down: slices.Clone(in.Rescales.Down)}
	}
	// Without a behavior rescales are not noted.
	switch from := in.Replicas.Spec; {
	case in.Behavior == nil:
	case to > from:
		rescales.Up = note(rescales.Up, Rescale{in.Now, Exactly(to - from)}, in.Behavior.Up.longestPeriod())
	case to < from:
		rescales.Down = note(rescales.Down, Rescale{in.Now, Exactly(from - to)}, in.Behavior.Down.longestPeriod())
	}
	return &history, &rescales
}

// unexpired drops proposals that are out of both windows.
func (in Input) unexpired(recommendations []Recommendation) []Recommendation {
	up, down := in.windows()
	cutoff := in.Now.Add(-max(up, down))
	return slices.DeleteFunc(recommendations, func(r Recommendation) bool { return r.Time.Before(cutoff) })
}

// note stores a rescale in the place of one that no policy of its own direction
// looks at any more, if there is one. The other direction's policies may look
// further back: they lose it.
func note(rescales []Rescale, rescale Rescale, longest time.Duration) []Rescale {
	cutoff := rescale.Time.Add(-longest)
	for i := len(rescales) - 1; i >= 0; i-- {
		if rescales[i].Time.Before(cutoff) {
			rescales[i] = rescale
			return rescales
		}
	}
	return append(rescales, rescale)
}

func (r Rules) longestPeriod() time.Duration {
	var longest time.Duration
	for _, policy := range r.Policies {
		longest = max(longest, policy.Period)
	}
	return longest
}
