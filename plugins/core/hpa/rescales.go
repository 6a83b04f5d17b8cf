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
	// Before is the size that the workload's own events prove it had, nil where
	// they do not (SizesBefore).
	Before *int32
}

// sameMoment is how far the time of an event and status.lastScaleTime, both in
// whole seconds, may lie apart.
const sameMoment = 2 * time.Second

// KnownRescales rebuilds the HPA's own rescales from its events and from
// status.lastScaleTime; nil means that they are not known well enough. Events
// that were not readable are nil.
//
// lastScaleTime alone proves that there are none where it is older than the
// longest policy period. An event gives the new size only: deltaOf bounds the old
// one. Without MemorySince the controller may have forgotten each of them.
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
	if slices.ContainsFunc(sorted, func(e SizeEvent) bool { return e.Count > 1 && recent(e.Time) }) {
		// Equal events are merged: the times in between are lost.
		return nil
	}
	// What allowed the oldest of them lies as far back again.
	complete := !in.mayLack(sorted, 2*(longest+unsure))
	deltas := make([]Range, len(sorted))
	for i := range sorted {
		deltas[i] = in.deltaOf(sorted, deltas, i, complete)
	}
	last := len(sorted)
	// In the sync that rescaled, its own change was not yet an event.
	if o.Able == string(SucceededRescale) {
		last--
	}
	first := slices.IndexFunc(sorted, func(e SizeEvent) bool { return recent(e.Time) })
	if first < 0 || first >= last {
		return &Rescales{}
	}
	return in.remembered(sorted, deltas, first, last)
}

// remembered is what the controller knows of the events from first up to, not
// including, end: at the time of the latter.
func (in Input) remembered(sorted []SizeEvent, deltas []Range, first, end int) *Rescales {
	known := &Rescales{}
	for i := first; i < end; i++ {
		event, delta := sorted[i], deltas[i]
		up := event.isUp()
		switch since := in.MemorySince; {
		case since == nil || event.Time.Sub(*since).Abs() <= time.Second:
			// A controller that took over since then knows nothing of it.
			delta.Low = 0
		case event.Time.Before(*since):
			continue
		}
		// A later one of the same direction may have taken its place.
		if later := lastOf(sorted[i+1:end], up); later != nil && later.Time.Sub(event.Time)+time.Second >= in.rules(up).longestPeriod() {
			delta.Low = 0
		}
		if event.Before != nil {
			known.Told = append(known.Told, event.Time)
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
