package hpa

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// SizeEvent is an event SuccessfulRescale of the HPA.
type SizeEvent struct {
	// Time is when it was last seen, Count how often.
	Time  time.Time
	Count int32
	// Size is the new size, Reason the controller's text behind it.
	Size   int32
	Reason string
}

// sameMoment is how far the time of an event and status.lastScaleTime, both in
// whole seconds, may lie apart.
const sameMoment = 2 * time.Second

// KnownRescales rebuilds the HPA's own rescales from its events and from
// status.lastScaleTime; nil means that they are not known well enough. Events
// that were not readable are nil.
//
// lastScaleTime alone proves that there are none where it is older than the
// longest policy period. An event gives the new size only: the old one is
// bounded by the direction and the range. Without MemorySince the controller may
// have forgotten each of them.
func (in Input) KnownRescales(events []SizeEvent, o Observed) *Rescales {
	longest := in.LongestPeriod()
	recent := func(at time.Time) bool { return in.Now.Sub(at)-in.Slack-time.Second < longest }
	if longest == 0 || o.LastScale == nil || !recent(*o.LastScale) {
		return &Rescales{}
	}
	if events == nil {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(events), func(a, b SizeEvent) int { return a.Time.Compare(b.Time) })
	// The newest event must be the one that lastScaleTime tells of, or events
	// were dropped.
	if len(sorted) == 0 || sorted[len(sorted)-1].Time.Sub(*o.LastScale).Abs() > sameMoment || in.mayLack(sorted, longest) {
		return nil
	}
	known := &Rescales{}
	for i, event := range sorted {
		if !recent(event.Time) {
			continue
		}
		if event.Count > 1 {
			// Equal events are merged: the times in between are lost.
			return nil
		}
		// In the sync that rescaled, its own change was not yet an event.
		if o.Able == string(SucceededRescale) && i == len(sorted)-1 {
			continue
		}
		up := event.isUp()
		delta := in.deltaOf(event, up)
		if in.SpecSince == nil || !event.Time.After(in.SpecSince.Add(time.Second)) {
			// Other limits and other periods may have been in force, or no
			// behavior, which notes nothing.
			delta = Range{0, max(1, event.Size)}
			if !up {
				delta.High = AnyCount().High
			}
		}
		switch since := in.MemorySince; {
		case since == nil || event.Time.Sub(*since).Abs() <= time.Second:
			// A controller that took over since then knows nothing of it.
			delta.Low = 0
		case event.Time.Before(*since):
			continue
		}
		// A later one of the same direction may have taken its place.
		if later := lastOf(sorted[i+1:], up); later != nil && later.Time.Sub(event.Time)+time.Second >= in.rules(up).longestPeriod() {
			delta.Low = 0
		}
		if up {
			known.Up = append(known.Up, Rescale{Time: event.Time, Delta: delta})
		} else {
			known.Down = append(known.Down, Rescale{Time: event.Time, Delta: delta})
		}
	}
	return known
}

// client-go lets an object have 25 events at once and one more every five
// minutes, and drops those beyond (EventSourceObjectSpamFilter).
const (
	eventEvery = 5 * time.Minute
	eventsKept = time.Hour
)

// mayLack says whether the controller may have dropped an event within the
// longest period. Up to the moment of a drop at least one event every five
// minutes was let through, for as long as events are kept.
func (in Input) mayLack(sorted []SizeEvent, longest time.Duration) bool {
	oldest := in.Now.Add(-in.Slack - longest - time.Second)
	// A drop lies behind some event, which is the last one before it.
	for last := range sorted {
		next := in.Now
		if last+1 < len(sorted) {
			next = sorted[last+1].Time
		}
		if !next.Before(oldest) && in.mayDrop(sorted[:last+1], oldest) {
			return true
		}
	}
	return false
}

// mayDrop says whether so many events came before, back to when they are no
// longer kept, that the next one may have been dropped.
func (in Input) mayDrop(before []SizeEvent, oldest time.Time) bool {
	at := before[len(before)-1].Time
	if at.Before(oldest) {
		at = oldest
	}
	count := 0
	for i := len(before) - 1; i >= 0; i-- {
		since := at.Sub(before[i].Time)
		if float64(count) < float64(since)/float64(eventEvery)-1 {
			return false
		}
		count += int(max(1, before[i].Count))
	}
	kept := at.Sub(in.Now.Add(-eventsKept))
	return float64(count) >= float64(kept)/float64(eventEvery)-1
}

func (e SizeEvent) isUp() bool {
	return !strings.Contains(e.Reason, "below target") && !strings.Contains(e.Reason, "above Spec.MaxReplicas")
}

// lastOf returns the last event of a direction, nil without one.
func lastOf(events []SizeEvent, up bool) *SizeEvent {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].isUp() == up {
			return &events[i]
		}
	}
	return nil
}

func (in Input) rules(up bool) Rules {
	if up {
		return in.Behavior.Up
	}
	return in.Behavior.Down
}

// deltaOf bounds by how much an event changed the size. The size of the event
// before proves nothing: somebody else may have changed it in between.
func (in Input) deltaOf(event SizeEvent, up bool) Range {
	switch {
	case strings.Contains(event.Reason, "below Spec.MinReplicas"):
		return Range{1, max(1, event.Size)}
	case strings.Contains(event.Reason, "above Spec.MaxReplicas"):
		return Range{1, AnyCount().High}
	case up:
		// Within its range the HPA leaves a size only for another one in it.
		return Range{1, max(1, event.Size-min(in.Min, event.Size))}
	}
	return Range{1, max(1, clamp(int64(in.Max)-int64(event.Size)))}
}

// combined is how client-go marks one event that stands for all that follow
// ten of the same reason with different texts within ten minutes.
const combined = "(combined from similar events): "

// ParseRescale reads the message of an event SuccessfulRescale:
// "New size: N; reason: R".
func ParseRescale(message string) (size int32, reason string, ok bool) {
	text, found := strings.CutPrefix(strings.TrimPrefix(message, combined), "New size: ")
	if !found {
		return 0, "", false
	}
	number, reason, found := strings.Cut(text, "; reason: ")
	n, err := strconv.ParseInt(number, 10, 32)
	return int32(n), reason, found && err == nil
}
