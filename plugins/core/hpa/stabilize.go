package hpa

import (
	"math"
	"time"
)

// AbleReason is a reason of the condition AbleToScale.
type AbleReason string

const (
	SucceededGetScale AbleReason = "SucceededGetScale"
	// FailedGetScale: the sync ended before it looked at any metric.
	FailedGetScale      AbleReason = "FailedGetScale"
	ReadyForNewScale    AbleReason = "ReadyForNewScale"
	ScaleUpStabilized   AbleReason = "ScaleUpStabilized"
	ScaleDownStabilized AbleReason = "ScaleDownStabilized"
	SucceededRescale    AbleReason = "SucceededRescale"
)

// Stabilization is the step that holds a size against recent proposals.
type Stabilization struct {
	// UpWindow and DownWindow are the windows that apply. Without a behavior
	// there is no window up.
	UpWindow, DownWindow time.Duration
	// UpFloor is the lowest proposal of the window up, DownFloor the highest of
	// the window down, this sync's included.
	UpFloor, DownFloor Range
	// Count is the size after this step.
	Count Range
	// Known is false where the controller's memory would be needed.
	Known bool
	// Reason is "" where bounds leave it open.
	Reason AbleReason
}

func (in Input) windows() (up, down time.Duration) {
	down = in.Flags.downscaleWindow()
	if in.Behavior == nil {
		return 0, down
	}
	if w := in.Behavior.Up.Window; w != nil {
		up = *w
	}
	if w := in.Behavior.Down.Window; w != nil {
		down = *w
	}
	return up, down
}

// Windows are the stabilization windows that apply; up is 0 without a behavior.
func (in Input) Windows() (up, down time.Duration) { return in.windows() }

func (in Input) stabilize(raw Range) Stabilization {
	s := Stabilization{Known: true}
	s.UpWindow, s.DownWindow = in.windows()
	s.UpFloor, s.DownFloor = in.floors(raw, s.UpWindow, s.DownWindow)
	if in.Behavior == nil {
		// An older recommendation can even raise the size above the current one.
		s.Count = s.DownFloor
	} else {
		s.Count = Range{
			Low:  into(in.Replicas.Spec, s.UpFloor.Low, s.DownFloor.Low),
			High: into(in.Replicas.Spec, s.UpFloor.High, s.DownFloor.High),
		}
	}
	s.Known = in.History != nil || s.Count.Exact() || s.UpWindow == 0 && s.DownWindow == 0 && in.Behavior != nil
	if recalled := in.Recalled; in.History == nil && recalled != nil {
		s.Known = s.Known || (recalled.Lowest.Exact() || s.UpWindow == 0) && recalled.Highest.Exact()
	}
	s.Reason = in.ableReason(raw, s.Count)
	return s
}

// floors returns the lowest recent proposal of the window up and the highest
// of the window down.
func (in Input) floors(raw Range, upWindow, downWindow time.Duration) (up, down Range) {
	up, down = raw, raw
	if in.History == nil {
		if recalled := in.Recalled; recalled != nil {
			if upWindow > 0 {
				up = Range{min(raw.Low, recalled.Lowest.Low), min(raw.High, recalled.Lowest.High)}
			}
			if downWindow > 0 || in.Behavior == nil {
				down = Range{max(raw.Low, recalled.Highest.Low), max(raw.High, recalled.Highest.High)}
			}
			return up, down
		}
		if upWindow > 0 {
			up.Low = 0
		}
		if downWindow > 0 || in.Behavior == nil {
			down.High = math.MaxInt32
		}
		return up, down
	}
	upCutoff, downCutoff := in.Now.Add(-upWindow), in.Now.Add(-downWindow)
	for _, rec := range in.History.Recommendations {
		// With a behavior an entry as old as the window is out of it, without
		// one it still counts.
		recent := rec.Time.After(downCutoff)
		if in.Behavior == nil {
			recent = !rec.Time.Before(downCutoff)
		}
		if recent {
			down = Range{max(down.Low, rec.Count), max(down.High, rec.Count)}
		}
		if rec.Time.After(upCutoff) {
			up = Range{min(up.Low, rec.Count), min(up.High, rec.Count)}
		}
	}
	return up, down
}

// into brings the current size into [up, down].
func into(spec, up, down int32) int32 { return min(max(spec, up), down) }

func (in Input) ableReason(raw, count Range) AbleReason {
	switch {
	case !raw.Exact() || !count.Exact():
		return ""
	case raw == count:
		return ReadyForNewScale
	case in.Behavior != nil && raw.Low >= in.Replicas.Spec:
		return ScaleUpStabilized
	}
	return ScaleDownStabilized
}
