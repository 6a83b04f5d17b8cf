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

// mostTurns bounds how many ways are looked at; with a few uncertain metrics
// there are some dozens.
const mostTurns = 500

// settleBoth looks ahead from all that is known, a sync each period; nil where
// a metric keeps the way open.
func settleBoth(low, high hpa.Input, period time.Duration) *record.SettledSize {
	var to *record.SettledSize
	lowest, highest := int32(math.MaxInt32), int32(0)
	inputs := turning(low, high)
	if len(inputs) > mostTurns {
		return nil
	}
	for _, in := range inputs {
		if to = settle(in, period); to == nil {
			return nil
		}
		lowest, highest = min(lowest, to.Replicas.Low), max(highest, to.Replicas.Low)
	}
	to.Replicas = record.CountRange{Low: lowest, High: &highest}
	return to
}

// turning are inputs between which sizes only grow, from that of the smallest
// totals to that of the largest. A target of the total has turning points in
// between: in its tolerance the size is kept.
func turning(low, high hpa.Input) []hpa.Input {
	all := []hpa.Input{low, high}
	for i, metric := range high.Metrics {
		least, most := low.Metrics[i].Seen.Total, metric.Seen.Total
		if metric.Target != hpa.Value || metric.TargetMilli <= 0 || least == nil || most == nil || *least == *most {
			continue
		}
		before := all
		for _, total := range high.Turns(metric.TargetMilli, *least, *most) {
			for _, in := range before {
				in.Metrics = slices.Clone(in.Metrics)
				in.Metrics[i].Seen = hpa.Observation{State: hpa.Seen, Total: &total}
				all = append(all, in)
			}
		}
	}
	// That of the largest totals last: its way is the one to be shown.
	return append(all, high)
}

// settle runs sync after sync with every value as it is and each pod Ready at
// once, until nothing changes any more.
func settle(in hpa.Input, period time.Duration) *record.SettledSize {
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
		if in.Now.Sub(last) > longestWait(decision, period) {
			break
		}
		in.Now = in.Now.Add(period)
		if spreads && size > 0 {
			in = load.over(in)
		}
	}
	out.Unsettled = in.Now.Sub(start) > lookAhead
	out.Replicas = record.CountRange{Low: in.Replicas.Spec, High: &in.Replicas.Spec}
	return out
}

// arrived shortens the way to a size that the controller has asked for already:
// its windows let it.
func arrived(to *record.SettledSize, desired int32) {
	if size, known := exact(settledRange(to)); !known || size != desired || to.Unsettled || len(to.Path) != 1 {
		return
	}
	to.AfterSeconds, to.Path[0].Seconds = 0, 0
}

func settledRange(to *record.SettledSize) *record.CountRange {
	if to == nil {
		return nil
	}
	return &to.Replicas
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
func longestWait(d hpa.Decision, period time.Duration) time.Duration {
	wait := d.Input.LongestPeriod()
	if d.Stabilization != nil {
		wait += max(d.Stabilization.UpWindow, d.Stabilization.DownWindow)
	}
	return wait + period
}
