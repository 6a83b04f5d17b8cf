package hpa

import "math"

// tolerances are how far a ratio may lie from 1 without a change of size.
type tolerances struct {
	up, down float64
	// symmetric is the test of versions up to 1.32. It differs from the later
	// one at exactly one tenth: |1-1.1| is a little more than 0.1 in a float64.
	symmetric bool
}

// tolerances returns the flag, or the behavior's own values where the version
// reads them: gate HPAConfigurableTolerance, on by default since 1.35.
func (in Input) tolerances() tolerances {
	flag := in.Flags.tolerance()
	t := tolerances{up: flag, down: flag, symmetric: !in.Version.since(33)}
	configurable := in.Version.since(35)
	if gate := in.Flags.ConfigurableTolerance; gate != nil && in.Version.since(33) {
		configurable = *gate
	}
	if in.Behavior == nil || !configurable {
		return t
	}
	if own := in.Behavior.Up.Tolerance; own != nil {
		t.up = *own
	}
	if own := in.Behavior.Down.Tolerance; own != nil {
		t.down = *own
	}
	return t
}

func (t tolerances) within(ratio float64) bool {
	if t.symmetric {
		return math.Abs(1.0-ratio) <= t.up
	}
	return (1.0-t.down) <= ratio && ratio <= (1.0+t.up)
}

// Tolerances are how far a ratio may lie above and below 1 without a change.
func (in Input) Tolerances() (up, down float64) {
	t := in.tolerances()
	return t.up, t.down
}
