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
	// NoReplicas: there is no replica to take an average of. Where only the
	// average is known, the total is not.
	NoReplicas ProposalReason = "NoReplicas"
	// Rounding: what the status shows is too coarse to tell.
	Rounding ProposalReason = "Rounding"
	// MetricFailed: the controller could not get the metric.
	MetricFailed ProposalReason = "MetricFailed"
	// NotSeen: nothing says what the controller saw.
	NotSeen ProposalReason = "NotSeen"
	// HeldByPods: without the pods that have no sample the size would change;
	// with what these are taken to use it does not.
	HeldByPods ProposalReason = "HeldByPods"
	// PodsUncertain: the status does not show how many pods had a sample, and
	// that decides.
	PodsUncertain ProposalReason = "PodsUncertain"
	// PodsUnknown: the pods that the sync saw are not known.
	PodsUnknown ProposalReason = "PodsUnknown"
	// NotModelled: no API server accepts such a metric.
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
	// Shown is what the status shows of the metric after the sync.
	Shown Shown
	// Filled is the ratio with the pods without samples filled in; nil where
	// that was not needed, or is not known.
	Filled *float64
	// Groups are the pods behind the average of a metric of pods; nil where
	// they were not needed, or are not known.
	Groups *Groups
	// Complete is Count if every pod had a sample; nil where that is no matter.
	Complete *Complete
	// Failure is the controller's reason where the metric failed, Detail what
	// was wrong where that is known.
	Failure, Detail string
	// Edges are the totals at which this metric would change the size.
	Edges Edges
}

// Shown are a metric's values in status.currentMetrics, in thousandths; nil
// where there is none, or where they are not known exactly.
type Shown struct {
	Value, Average *int64
	Utilization    *int32
}

func (in Input) propose(metric Metric) Proposal {
	p := Proposal{Metric: metric, Count: AnyCount(), Ratio: math.NaN()}
	switch metric.Seen.State {
	case Failed:
		p.Reason, p.Failure = MetricFailed, metric.Seen.Reason
		return p
	case Seen:
	default:
		p.Reason = NotSeen
		return p
	}
	whole := metric.Type == External || metric.Type == Object
	switch {
	case metric.TargetMilli <= 0:
		p.Reason = NotModelled
	case in.ofNoReplicas(metric):
		p.Reason = NoReplicas
	case whole && metric.Target == AverageValue:
		in.proposePerReplica(&p)
	case whole && metric.Target == Value:
		in.proposeWhole(&p)
	case !whole && (metric.Target == AverageValue || metric.Target == Utilization):
		in.perPod(&p)
		p.Complete = in.complete(p)
	default:
		p.Reason = NotModelled
	}
	return p
}

// fail notes that the controller could not compute the metric.
func (p *Proposal) fail(detail string) {
	p.Count, p.Reason, p.Detail = AnyCount(), MetricFailed, detail
	p.Failure = "FailedGet" + string(p.Metric.Type) + "Metric"
}

func (in Input) proposePerReplica(p *Proposal) {
	target, status := p.Metric.TargetMilli, in.Replicas.Status
	low, high, ok := in.totalsSeen(p.Metric, status)
	if !ok {
		p.Reason = NotSeen
		return
	}
	if low == high && status.Exact() && status.Low > 0 {
		average := high
		if float64(high) < math.MaxInt64 {
			average = int64(math.Ceil(float64(high) / float64(status.Low)))
		}
		p.Shown.Average = &average
	}
	_, p.Ratio = in.perReplica(high, target, status.High)
	p.TotalLow, p.TotalHigh = &low, &high
	p.Count, p.Reason = in.perReplicaAmong(p.Metric, status)
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
	if in.Pods != nil && len(in.Pods) == 0 && in.Replicas.Spec != 0 && !in.tolerances().within(float64(total)/float64(p.Metric.TargetMilli)) {
		p.fail("the selector matches no pod")
		return
	}
	most := total
	if p.Metric.Seen.Most == nil {
		p.Shown.Value = &total
	} else {
		most = max(total, *p.Metric.Seen.Most)
	}
	_, p.Ratio = in.whole(most, p.Metric.TargetMilli, ready.High)
	p.TotalLow, p.TotalHigh = &total, &most
	p.Count, p.Reason = in.wholeAmong(total, most, p.Metric.TargetMilli, ready)
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

// smallestAverage is the smallest one that can be multiplied with any size.
const smallestAverage = math.MinInt64 / 2 / math.MaxInt32

// totals bounds the metric's total for a number of replicas.
func (o Observation) totals(status Range) (low, high int64, ok bool) {
	switch {
	case o.Total != nil && o.Most != nil:
		return *o.Total, max(*o.Total, *o.Most), true
	case o.Total != nil:
		return *o.Total, *o.Total, true
	case o.Average == nil, *o.Average < smallestAverage, status.High <= 0:
		return 0, 0, false
	}
	low, high = totalsOf(*o.Average, max(status.Low, 1))
	lowMost, highMost := totalsOf(*o.Average, status.High)
	return min(low, lowMost), max(high, highMost), true
}
