package hpa

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// unsure is how much later than its sync an event may have been made, and how
// much later than a change of the HPA a sync may still have used the old spec.
const unsure = 3 * time.Second

// deltaOf bounds by how much the event at i changed the size, given the bounds
// of those before it. The size that the event before it made proves nothing:
// somebody else may have changed it in between. What proves something is its
// reason, the range, the policies that had to allow it where the events before
// it are complete, and the workload's own events.
func (in Input) deltaOf(sorted []SizeEvent, deltas []Range, i int, complete bool) Range {
	event := sorted[i]
	up := event.isUp()
	delta := Range{1, max(1, event.Size)}
	if !up {
		delta.High = AnyCount().High
	}
	if event.Before != nil && *event.Before != event.Size && (*event.Before < event.Size) == up {
		delta = Exactly(max(event.Size-*event.Before, *event.Before-event.Size))
	}
	if in.SpecSince == nil || !event.Time.After(in.SpecSince.Add(unsure)) {
		// Other limits and other periods may have been in force, or no behavior,
		// which notes nothing.
		delta.Low = 0
		return delta
	}
	switch {
	case delta.Exact(), strings.Contains(event.Reason, "below Spec.MinReplicas"), strings.Contains(event.Reason, "above Spec.MaxReplicas"):
		return delta
	case up:
		// Within its range the HPA leaves a size only for another one in it.
		delta.High = max(1, event.Size-min(in.Min, event.Size))
	default:
		delta.High = max(1, clamp(int64(in.Max)-int64(event.Size)))
	}
	if !complete {
		return delta
	}
	return in.allowed(sorted, deltas, i, delta)
}

// allowed narrows a change to what the policies allowed at its time.
func (in Input) allowed(sorted []SizeEvent, deltas []Range, i int, delta Range) Range {
	event, up := sorted[i], sorted[i].isUp()
	then := in
	then.Now, then.Slack = event.Time.Add(time.Second), unsure
	if in.MemorySince != nil && event.Time.Sub(*in.MemorySince) <= time.Second {
		// It was another process that did this: since when it remembered is
		// unknown.
		then.MemorySince = nil
	}
	window := in.LongestPeriod() + 2*unsure
	lost := func(e SizeEvent) bool { return e.Count > 1 && event.Time.Sub(e.Time) < window }
	wide := slices.ContainsFunc(in.rules(up).Policies, func(p Policy) bool { return p.Type == PercentPolicy && p.Value > 100 })
	if in.Behavior == nil || in.rules(up).Select == SelectDisabled || slices.ContainsFunc(sorted, lost) || (!up && wide) || (up && event.Size <= in.Min) {
		return delta
	}
	first := slices.IndexFunc(sorted, func(e SizeEvent) bool { return event.Time.Sub(e.Time) < window })
	then.Rescales = then.remembered(sorted, deltas, first, i)
	// The larger the step, the sooner it is refused.
	refused := sort.Search(int(delta.High-delta.Low), func(n int) bool {
		step := delta.Low + 1 + int32(n)
		if up {
			then.Replicas.Spec = event.Size - step
			limit, _ := then.policyLimits()
			return limit.High < event.Size
		}
		then.Replicas.Spec = event.Size + step
		_, limit := then.policyLimits()
		return limit.Low > event.Size
	})
	return Range{delta.Low, delta.Low + int32(refused)}
}

// SizeStep is a change of the workload's size that its own controller carried
// out: an event ScalingReplicaSet.
type SizeStep struct {
	// Time is when it was last seen, Count how often.
	Time  time.Time
	Count int32
	// Set is the ReplicaSet.
	Set      string
	From, To int32
}

// SizesBefore takes the sizes before rescales from the steps of a workload that
// has one ReplicaSet all the time: a rollout's steps are no sizes of the
// workload. A rescale's size before is known where the step that follows it ends
// at its size and began where the step before had ended, at rest. What remains
// is an assumption: that nobody wrote yet another size within the second before
// the rescale, which the workload's controller then never saw.
func SizesBefore(events []SizeEvent, steps []SizeStep) []SizeEvent {
	events = slices.Clone(events)
	sorted := slices.SortedFunc(slices.Values(steps), func(a, b SizeStep) int { return a.Time.Compare(b.Time) })
	for _, step := range sorted {
		if step.Set != sorted[0].Set || step.Count > 1 {
			return events
		}
	}
	for i := range events {
		events[i].Before = sizeBefore(events[i], sorted)
	}
	return events
}

func sizeBefore(event SizeEvent, steps []SizeStep) *int32 {
	after := slices.IndexFunc(steps, func(s SizeStep) bool { return !s.Time.Before(event.Time) })
	if event.Count > 1 || after < 0 || steps[after].To != event.Size || steps[after].Time.Sub(event.Time) > sameMoment {
		return nil
	}
	if after > 0 && (steps[after-1].To != steps[after].From || event.Time.Sub(steps[after-1].Time) < sameMoment) {
		return nil
	}
	if after+1 < len(steps) && steps[after+1].Time.Sub(event.Time) < sameMoment {
		// Which of the two it was cannot be said.
		return nil
	}
	return &steps[after].From
}
