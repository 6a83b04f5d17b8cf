package hpa

import (
	"math"
	"slices"
	"time"
)

// Recalled are bounds of what the controller remembers of earlier syncs, for an
// Input without History.
type Recalled struct {
	// Lowest is the lowest proposal that is still in the window up, Highest the
	// highest of the window down. A bound that nothing proves is 0, or the
	// largest size there is.
	Lowest, Highest Range
}

// Past is the status of an HPA as a scrape found it: that of the last sync
// before the scrape, which may be as old as one sync period.
type Past struct {
	Time time.Time
	// Replicas.Spec is status.currentReplicas; Status and Ready bound what the
	// sync may have read.
	Replicas Replicas
	// Seen has an entry for each metric of the spec: Failed where the status has
	// none for it.
	Seen []Observation
}

// Recall makes bounds of the remembered proposals from scraped statuses, the
// oldest first; nil where they say nothing. period is how often the controller
// looks.
//
// A status lives for at least one period: the controller waits so long after
// each sync. Scrapes that are no further apart, from before the window's begin
// up to now, have then seen the status of every sync in it, and bound both
// sides. Others bound one: what some status proves was proposed.
//
// That a proposal is still remembered takes a controller that has run all the
// time (MemorySince); a new one begins with the size that it finds. And it takes
// that the spec is the one that was in force (SpecSince).
func (in Input) Recall(past []Past, period time.Duration) *Recalled {
	if in.SpecSince == nil || len(past) == 0 {
		return nil
	}
	up, down := in.windows()
	lowest, _ := in.recallWindow(past, period, up)
	_, highest := in.recallWindow(past, period, down)
	recalled := Recalled{Lowest: lowest, Highest: highest}
	if recalled == (Recalled{AnyCount(), AnyCount()}) {
		return nil
	}
	return &recalled
}

// recallWindow bounds the lowest and the highest proposal of one window.
func (in Input) recallWindow(past []Past, period, window time.Duration) (lowest, highest Range) {
	early, late := in.Now.Add(-in.Slack-window), in.Now.Add(-window)
	complete := in.SpecSince.Add(unsure).Before(early) && covers(past, early, in.Now, period)
	// Proposals that may be remembered, and those that surely are.
	may, least, most := Range{math.MaxInt32, 0}, int32(math.MaxInt32), int32(0)
	for _, one := range past {
		if one.Time.Before(early) || one.Time.After(in.Now) {
			continue
		}
		if in.seeds(early, one.Time) {
			may = may.or(Exactly(one.Replicas.Spec))
		}
		proposed, surely := in.proposedIn(one)
		if proposed.Low <= proposed.High {
			may = may.or(proposed)
		}
		if surely && in.remembers(one, late, period) {
			least, most = min(least, proposed.High), max(most, proposed.Low)
		}
	}
	if in.seeds(early, in.Now) {
		// It may even have begun in this very sync.
		may = may.or(Exactly(in.Replicas.Spec))
	}
	if !complete {
		// The rest of the window may have held anything.
		may = AnyCount()
	}
	if may.Low > may.High {
		// No sync of the window proposed anything.
		return Exactly(math.MaxInt32), Exactly(0)
	}
	return Range{may.Low, max(least, may.Low)}, Range{min(most, may.High), may.High}
}

// seeds says whether the controller may have begun its memory within the window,
// with the size of a sync that is shown at a time.
func (in Input) seeds(early, sync time.Time) bool {
	since := in.MemorySince
	return since == nil || (!since.Before(early.Add(-unsure)) && !sync.Before(since.Add(-unsure)))
}

// remembers says whether the sync behind a scrape lies in the window, after the
// controller took over and after the spec was written.
func (in Input) remembers(one Past, late time.Time, period time.Duration) bool {
	earliest := one.Time.Add(-period - max(2*time.Second, period/5))
	return earliest.After(late) && in.MemorySince != nil && earliest.After(in.MemorySince.Add(unsure)) && earliest.After(in.SpecSince.Add(unsure))
}

// proposedIn is what the sync behind a status proposed, an empty Range where it
// proposed nothing; surely is false where it may have proposed nothing.
func (in Input) proposedIn(one Past) (proposed Range, surely bool) {
	none := Range{math.MaxInt32, math.MinInt32}
	then := in
	then.Replicas, then.Pods, then.History, then.Recalled, then.Rescales = one.Replicas, nil, nil, nil, nil
	then.Metrics = slices.Clone(in.Metrics)
	for i := range then.Metrics {
		if i < len(one.Seen) {
			then.Metrics[i].Seen = one.Seen[i]
		} else {
			then.Metrics[i].Seen = Observation{State: Unknown}
		}
	}
	d := Decide(then)
	switch {
	case d.Path != ByMetrics, d.Blocking == AllFailed, d.Blocking == DownBlocked, d.Unselectable():
		return none, false
	case d.Blocking == MaybeBlocked:
		return Range{max(d.Raw.Low, one.Replicas.Spec), d.Raw.High}, false
	}
	return d.Raw, true
}

// Unselectable says that the sync did not ask for any metric.
func (d Decision) Unselectable() bool { return d.Input.Unselectable != "" }

// covers says whether scrapes lie no further apart than a period, from the
// begin up to the end.
func covers(past []Past, from, to time.Time, period time.Duration) bool {
	last := from
	for _, one := range past {
		switch {
		case one.Time.Before(from):
		case one.Time.After(to):
			return to.Sub(last) <= period
		case one.Time.Sub(last) > period:
			return false
		default:
			last = one.Time
		}
	}
	return to.Sub(last) <= period
}
