package explain

import (
	"math"
	"slices"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// lookAhead is how far settle looks: the longest window and the longest policy
// period of the API together.
const lookAhead = 90 * time.Minute

// settleBoth looks ahead from both ends of what is known; nil where a metric
// keeps the way open.
func settleBoth(low, high hpa.Input) *record.SettledSize {
	from, to := settle(low), settle(high)
	if from == nil || to == nil {
		return nil
	}
	if to.Replicas.Low != from.Replicas.Low {
		ends := []int32{from.Replicas.Low, to.Replicas.Low}
		to.Replicas = record.CountRange{Low: slices.Min(ends), High: new(slices.Max(ends))}
	}
	return to
}

// settle runs sync after sync with every value as it is and each pod Ready at
// once, until nothing changes any more.
func settle(in hpa.Input) *record.SettledSize {
	// What the pods report changes with their number.
	load, spreads, ok := spreadOf(in)
	if !ok {
		return nil
	}
	start := in.Now
	if start.IsZero() {
		start = time.Unix(0, 0)
	}
	in.Now, in.Slack = start, 0
	// The window down has just seen today's size: it holds as long as it can.
	in.History = &hpa.History{Recommendations: []hpa.Recommendation{{Time: start, Count: in.Replicas.Spec}}}
	if in.Rescales == nil || !exactRescales(*in.Rescales) {
		in.Rescales = &hpa.Rescales{}
	}
	if !in.Replicas.Status.Exact() || !in.Replicas.Ready.Exact() {
		in.Replicas.Status, in.Replicas.Ready = hpa.Exactly(in.Replicas.Spec), hpa.Exactly(in.Replicas.Spec)
	}
	out := &record.SettledSize{Path: []record.SizeAt{}, Estimate: spreads}
	last := start
	for in.Now.Sub(start) <= lookAhead {
		decision := hpa.Decide(in)
		if !decision.Desired.Exact() || decision.Blocking == hpa.MaybeBlocked {
			return nil
		}
		size := decision.Desired.Low
		in.History, in.Rescales = hpa.Remember(decision, size)
		if size != in.Replicas.Spec {
			last = in.Now
			out.AfterSeconds = in.Now.Sub(start).Seconds()
			out.Path = append(out.Path, record.SizeAt{Seconds: out.AfterSeconds, Replicas: size})
		}
		in.Replicas = hpa.Replicas{Spec: size, Status: hpa.Exactly(size), Ready: hpa.Exactly(size)}
		if in.Now.Sub(last) > longestWait(decision) {
			break
		}
		in.Now = in.Now.Add(hpa.DefaultSyncPeriod)
		if spreads && size > 0 {
			in = load.over(in)
		}
	}
	out.Unsettled = in.Now.Sub(start) > lookAhead
	out.Replicas = record.CountRange{Low: in.Replicas.Spec, High: &in.Replicas.Spec}
	return out
}

func exactRescales(rescales hpa.Rescales) bool {
	for _, r := range slices.Concat(rescales.Up, rescales.Down) {
		if !r.Delta.Exact() {
			return false
		}
	}
	return true
}

// longestWait is how long a sync can be held by anything: after it, nothing
// more comes.
func longestWait(d hpa.Decision) time.Duration {
	wait := d.Input.LongestPeriod()
	if d.Stabilization != nil {
		wait += max(d.Stabilization.UpWindow, d.Stabilization.DownWindow)
	}
	return wait + hpa.DefaultSyncPeriod
}

// merge joins the decisions of the lower and the upper bounds of what was
// seen: each step is monotone between them.
func merge(low, high hpa.Decision) hpa.Decision {
	join := func(a, b hpa.Range) hpa.Range { return hpa.Range{Low: min(a.Low, b.Low), High: max(a.High, b.High)} }
	merged := high
	merged.Proposals = slices.Clone(high.Proposals)
	for i := range merged.Proposals {
		p, other := &merged.Proposals[i], low.Proposals[i]
		p.Count, p.TotalLow = join(p.Count, other.Count), other.TotalLow
		if p.Reason != other.Reason && !math.IsNaN(p.Ratio) {
			p.Reason = hpa.Rounding
		}
	}
	merged.Raw, merged.Desired = join(low.Raw, high.Raw), join(low.Desired, high.Desired)
	if low.Winner != high.Winner {
		merged.Winner = hpa.NoWinner
	}
	if low.Blocking != high.Blocking {
		merged.Blocking = hpa.MaybeBlocked
	}
	if low.Stabilization != nil && high.Stabilization != nil {
		s, l := *high.Stabilization, *high.Limit
		s.Count, s.Known = join(low.Stabilization.Count, s.Count), s.Known && low.Stabilization.Known
		l.Count, l.Known = join(low.Limit.Count, l.Count), l.Known && low.Limit.Known
		if s.Reason != low.Stabilization.Reason {
			s.Reason = ""
		}
		if l.Reason != low.Limit.Reason {
			l.Reason = ""
		}
		merged.Stabilization, merged.Limit = &s, &l
	}
	return merged
}
