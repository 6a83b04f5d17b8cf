package hpa

// Path says what the sync did before, or instead of, computing metrics.
type Path string

const (
	// ByMetrics: the metrics were computed.
	ByMetrics Path = "metrics"
	// AboveMax and BelowMin: the size is put back into its range at once;
	// metrics, stabilization and policies are not looked at.
	AboveMax Path = "above_max"
	BelowMin Path = "below_min"
	// Disabled: the size is zero, and not by the HPA's own doing.
	Disabled Path = "disabled"
)

// ActiveReason is a reason of the condition ScalingActive.
type ActiveReason string

const (
	ValidMetricFound ActiveReason = "ValidMetricFound"
	ScalingDisabled  ActiveReason = "ScalingDisabled"
	// InvalidSelector: the scale has no selector, or one that cannot be read.
	InvalidSelector ActiveReason = "InvalidSelector"
	// AmbiguousSelector: some pod belongs to another HPA too.
	AmbiguousSelector ActiveReason = "AmbiguousSelector"
)

// Decision is one sync of the controller, step by step.
type Decision struct {
	Input Input
	Path  Path
	// Proposals has one entry a metric, in the order of the spec.
	Proposals []Proposal
	// Winner indexes Proposals, or is NoWinner.
	Winner   int
	Raw      Range
	Blocking Blocking
	// Stabilization and Limit are nil where the sync did not get that far.
	Stabilization *Stabilization
	Limit         *Limit
	// Desired is the size that the sync asks for.
	Desired Range
	// Active is the reason of ScalingActive; "" where the sync leaves the
	// condition alone, or where bounds leave it open.
	Active ActiveReason
}

// Scales says whether the sync changes the size; sure is false where bounds
// leave that open.
func (d Decision) Scales() (scales, sure bool) {
	spec := d.Input.Replicas.Spec
	return d.Desired != Exactly(spec), d.Desired.Exact() || !d.Desired.Contains(spec)
}

// Decide carries out one sync.
func Decide(in Input) Decision {
	in.Replicas.Status = in.statusProven()
	d := Decision{Input: in, Winner: NoWinner, Blocking: NotBlocked, Raw: AnyCount()}
	for _, metric := range in.Metrics {
		proposal := in.propose(metric)
		proposal.Edges = in.edges(proposal)
		d.Proposals = append(d.Proposals, proposal)
	}
	holdBesideFailed(d.Proposals)
	spec := in.Replicas.Spec
	switch {
	case spec == 0 && !in.computesAtZero():
		d.Path, d.Desired, d.Active = Disabled, Exactly(0), ScalingDisabled
	case spec != 0 && spec > in.Max:
		d.Path, d.Desired = AboveMax, Exactly(in.Max)
	case spec != 0 && spec < in.Min:
		d.Path, d.Desired = BelowMin, Exactly(in.Min)
	default:
		d.byMetrics()
	}
	return d
}

// computesAtZero: up to 1.35 an HPA with minReplicas 0 computes metrics at
// size zero. Later it does where it was the one that scaled to zero.
func (in Input) computesAtZero() bool {
	if !in.Version.since(36) {
		return in.Min == 0
	}
	gate := in.Version.since(37)
	if in.Flags.ScaleToZero != nil {
		gate = *in.Flags.ScaleToZero
	}
	return gate && in.ScaledToZero && (in.Min != 0 || in.hasTotals())
}

func (in Input) hasTotals() bool {
	for _, metric := range in.Metrics {
		if metric.Type == External || metric.Type == Object {
			return true
		}
	}
	return false
}

func (d *Decision) byMetrics() {
	in := d.Input
	spec := in.Replicas.Spec
	d.Path = ByMetrics
	d.Raw, d.Winner, d.Blocking = combine(d.Proposals, spec)
	if d.Blocking == NotBlocked && d.hidesNegative() {
		d.Blocking = MaybeBlocked
	}
	// What the controller goes on with is never negative.
	d.Raw = Range{max(d.Raw.Low, 0), max(d.Raw.High, 0)}
	if in.Unselectable != "" {
		// No metric is even asked for.
		d.Raw, d.Winner, d.Blocking = AnyCount(), NoWinner, AllFailed
		d.Desired, d.Active = Exactly(spec), in.Unselectable
		return
	}
	if d.Blocking == AllFailed || d.Blocking == DownBlocked {
		d.Desired = Exactly(spec)
		d.Active = d.firstFailure()
		return
	}
	if d.Blocking == NotBlocked {
		d.Active = ValidMetricFound
	}
	stabilization := in.stabilize(d.Raw)
	limit := in.limit(stabilization.Count)
	d.Stabilization, d.Limit, d.Desired = &stabilization, &limit, limit.Count
	// A minimum that rose while the size was zero is made up for at once.
	if spec == 0 && in.Min != 0 {
		d.Desired = Range{max(d.Desired.Low, in.Min), max(d.Desired.High, in.Min)}
	}
	if d.Blocking == MaybeBlocked {
		// Where the good metrics ask for less, nothing changes.
		d.Desired = Range{spec, max(d.Desired.High, spec)}
	}
}

// hidesNegative says whether the good metrics may ask for less than nothing, and
// so for less than a size of zero, while another one failed: a negative total
// gives a negative size up to 1.33, and without replicas the status hides it.
func (d *Decision) hidesNegative() bool {
	hidden, failed := false, false
	for _, p := range d.Proposals {
		hidden = hidden || p.Reason == NoReplicas && p.Count == AnyCount()
		failed = failed || p.Reason == MetricFailed
	}
	return hidden && failed && !d.Input.Version.since(34)
}

func (d *Decision) firstFailure() ActiveReason {
	for _, p := range d.Proposals {
		if p.Reason == MetricFailed {
			return ActiveReason(p.Failure)
		}
	}
	return ""
}
