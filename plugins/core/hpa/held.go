package hpa

import "time"

// HeldBy is the latest time at which the controller can have recorded the
// proposal that holds the size in a stabilization window: with the window added,
// the hold ends then at the latest, if the proposals stay as they are.
//
// Without more knowledge that is the last sync. A status that has not changed
// since tells more: each sync since then asked for less than what holds the size
// (for more, in the window up), so what holds it was recorded before. That takes
// the condition DesiredWithinRange, which says that nothing but stabilization
// made the size, and a controller that has run all the time: a new one begins
// with the size that it finds as its first proposal.
func (in Input) HeldBy(o Observed) time.Time {
	unchanged := o.statusTime.Add(time.Second)
	held := o.Able == string(ScaleDownStabilized) || o.Able == string(ScaleUpStabilized)
	switch {
	case !held || o.Limited != string(DesiredWithinRange) || o.statusTime.IsZero():
	case in.MemorySince == nil || in.MemorySince.After(o.statusTime):
	case unchanged.Before(in.Now):
		return unchanged
	}
	return in.Now
}
