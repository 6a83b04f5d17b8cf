package hpa

import "math"

// ProposalReason says how a metric's proposal came about.
type ProposalReason string

const (
	// WithinTolerance: the ratio is near enough to 1, the size is kept.
	WithinTolerance ProposalReason = "WithinTolerance"
	// AboveTarget and BelowTarget: the target divides the value, rounded up.
	AboveTarget ProposalReason = "AboveTarget"
	BelowTarget ProposalReason = "BelowTarget"
	// NoReplicas: there is no replica to take an average of.
	NoReplicas ProposalReason = "NoReplicas"
	// Rounding: what the status shows is too coarse to tell.
	Rounding ProposalReason = "Rounding"
	// MetricFailed: the controller could not get the metric.
	MetricFailed ProposalReason = "MetricFailed"
	// NotSeen: nothing says what the controller saw.
	NotSeen ProposalReason = "NotSeen"
	// NotModelled: the proposal depends on samples per pod, which the HPA's
	// status does not show.
	NotModelled ProposalReason = "NotModelled"
)

// Proposal is the size that one metric asks for.
type Proposal struct {
	Metric Metric
	Count  Range
	Reason ProposalReason
	// TotalLow and TotalHigh bound the total in thousandths; nil where unknown.
	TotalLow, TotalHigh *int64
	// Ratio is value over target; NaN where unknown.
	Ratio float64
	// Edges are the totals at which this metric would change the size.
	Edges Edges
}

func (in Input) propose(metric Metric) Proposal {
	p := Proposal{Metric: metric, Count: AnyCount(), Ratio: math.NaN()}
	switch metric.Seen.State {
	case Failed:
		p.Reason = MetricFailed
		return p
	case Seen:
	default:
		p.Reason = NotSeen
		return p
	}
	if (metric.Type != External && metric.Type != Object) || metric.TargetMilli <= 0 {
		p.Reason = NotModelled
		return p
	}
	switch metric.Target {
	case AverageValue:
		in.proposePerReplica(&p)
	case Value:
		in.proposeWhole(&p)
	default:
		p.Reason = NotModelled
	}
	return p
}

func (in Input) proposePerReplica(p *Proposal) {
	target, status := p.Metric.TargetMilli, in.Replicas.Status
	low, high, ok := p.Metric.Seen.totals(status)
	if !ok {
		p.Reason = NotSeen
		return
	}
	if p.Metric.Seen.Total != nil {
		low, high = in.summed(p.Metric, low), in.summed(p.Metric, high)
	} else if p.Metric.Type == External {
		low = max(low, min(high, 0))
	}
	first, ratio := in.perReplica(low, target, status.Low)
	last, lastRatio := in.perReplica(high, target, status.High)
	p.Count, p.Ratio, p.TotalLow, p.TotalHigh = span(first, last), lastRatio, &low, &high
	p.Reason = in.reason(ratio, lastRatio)
	if status.High == 0 {
		p.Reason = NoReplicas
	}
}

func (in Input) proposeWhole(p *Proposal) {
	if p.Metric.Seen.Total == nil {
		p.Reason = NotSeen
		return
	}
	total, ready := *p.Metric.Seen.Total, in.Replicas.Ready
	first, _ := in.whole(total, p.Metric.TargetMilli, ready.Low)
	last, ratio := in.whole(total, p.Metric.TargetMilli, ready.High)
	p.Count, p.Ratio, p.TotalLow, p.TotalHigh = span(first, last), ratio, &total, &total
	p.Reason = in.reason(ratio, ratio)
	if in.Replicas.Spec == 0 {
		p.Reason = NoReplicas
	}
}

func (in Input) reason(low, high float64) ProposalReason {
	one := func(ratio float64) ProposalReason {
		switch {
		case in.tolerances().within(ratio):
			return WithinTolerance
		case ratio > 1:
			return AboveTarget
		}
		return BelowTarget
	}
	if one(low) != one(high) {
		return Rounding
	}
	return one(high)
}

// smallestAverage is what a controller up to 1.37 shows as the average of no
// replicas, or less: no average that was measured.
const smallestAverage = math.MinInt64 / 2

// totals bounds the metric's total for a number of replicas.
func (o Observation) totals(status Range) (low, high int64, ok bool) {
	switch {
	case o.Total != nil:
		return *o.Total, *o.Total, true
	case o.Average == nil, *o.Average < smallestAverage/math.MaxInt32, status.High <= 0:
		return 0, 0, false
	}
	low, high = totalsOf(*o.Average, max(status.Low, 1))
	lowMost, highMost := totalsOf(*o.Average, status.High)
	return min(low, lowMost), max(high, highMost), true
}
