package record

// KindCapacityEnvelope is the kind of a CapacityEnvelope.
const KindCapacityEnvelope = "CapacityEnvelope"

// CapacityEnvelope says what one replica carries, by token shape, and which
// thresholds add a replica before users feel it. Loads, rates and signals are
// all per replica. A number that advises names the cases it rests on; where
// they do not suffice it is null and Withheld says why.
type CapacityEnvelope struct {
	TypeMeta
	// Model is the model that every report measured.
	Model string `json:"model"`
	// Runs are the reports that this is a fold over.
	Runs []EnvelopeRun `json:"runs"`
	// SLOs are the objectives behind x_slo; empty where none was given.
	SLOs []BenchSLO `json:"slos"`
	// Headroom is the share kept free of what a replica could carry, 0 to 1.
	Headroom float64 `json:"headroom"`
	// Tolerance is the HPA's: it acts on a value above (1 + Tolerance) times
	// the target.
	Tolerance float64         `json:"tolerance"`
	Bootstrap Bootstrap       `json:"bootstrap"`
	Shapes    []ShapeEnvelope `json:"shapes"`
}

// EnvelopeRun names one report.
type EnvelopeRun struct {
	Run         string `json:"run"`
	Source      string `json:"source"`
	ToolVersion string `json:"tool_version"`
	Cases       int    `json:"cases"`
}

// Bootstrap is how intervals were drawn: the same seed gives the same document.
type Bootstrap struct {
	Resamples int     `json:"resamples"`
	Seed      uint64  `json:"seed"`
	Level     float64 `json:"level"`
}

// ShapeEnvelope is the envelope of one token shape.
type ShapeEnvelope struct {
	PromptTokens int `json:"prompt_tokens"`
	OutputTokens int `json:"output_tokens"`
	// Levels are the loads in rising order; cases at one load are joined.
	Levels []CapacityLevel `json:"levels"`
	// Excluded are the cases that nothing here rests on.
	Excluded []ExcludedCase `json:"excluded"`
	Fit      USLFit         `json:"fit"`
	Knees    []Knee         `json:"knees"`
	// KneeRange is the span of the rules that look at the curve alone.
	KneeRange  KneeRange   `json:"knee_range"`
	Capacity   Capacity    `json:"capacity"`
	Thresholds []Threshold `json:"thresholds"`
	// Checks are given thresholds, held against the measured signals.
	Checks []ThresholdCheck `json:"checks"`
	// NextLoads are the loads to measure next, the most telling first.
	NextLoads []NextLoad `json:"next_loads"`
	Warnings  []Notice   `json:"warnings"`
}

// Notice is a stable code for programs and a line for people.
type Notice struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Interval is a range at a stated confidence; an end that the data does not
// bound is null.
type Interval struct {
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// Evidence is one case that a number rests on.
type Evidence struct {
	Run         string  `json:"run"`
	Case        string  `json:"case"`
	Concurrency float64 `json:"concurrency"`
	// WindowSeconds is the steady window; Requests completed in it; Samples is
	// the number of moments at which the signal was read, null for a number
	// that is not a signal.
	WindowSeconds float64 `json:"window_seconds"`
	Requests      int     `json:"requests"`
	Samples       *int    `json:"samples"`
	// Value is the number as measured in this case.
	Value    *float64  `json:"value"`
	Interval *Interval `json:"interval"`
}

// ExcludedCase is a case left out, and why.
type ExcludedCase struct {
	Run    string `json:"run"`
	Case   string `json:"case"`
	Reason Notice `json:"reason"`
}

// CapacityLevel is one load: what was measured at Concurrency requests in
// flight on one replica.
type CapacityLevel struct {
	Concurrency           float64   `json:"concurrency"`
	RequestsPerSecond     float64   `json:"requests_per_second"`
	Interval              *Interval `json:"requests_per_second_interval"`
	FittedPerSecond       *float64  `json:"fitted_per_second"`
	FittedInterval        *Interval `json:"fitted_interval"`
	OutputTokensPerSecond *float64  `json:"output_tokens_per_second"`
	GoodputPerSecond      *float64  `json:"goodput_per_second"`
	// Latencies are by name, such as "p99_e2e"; where cases are joined, the
	// largest.
	Latencies map[string]LatencyAt `json:"latencies"`
	// Signals are the server's own, by BenchSignals name, per replica.
	Signals map[string]SignalAt `json:"signals"`
	// GainPerRequest is the throughput gained by one more request in flight on
	// the way here from the level below; null on the first.
	GainPerRequest *float64 `json:"gain_per_request"`
	// Saturation is whether this load is more than the replica sustains.
	Saturation Saturation `json:"saturation"`
	Cases      []Evidence `json:"cases"`
}

// LatencyAt is a latency in seconds from Count requests. Confident is true
// where Count suffices to speak of that percentile.
type LatencyAt struct {
	Seconds   float64   `json:"seconds"`
	Interval  *Interval `json:"interval"`
	Count     int       `json:"count"`
	Confident bool      `json:"confident"`
}

// SignalAt is a server signal over a window; Max and Min are over its moments.
type SignalAt struct {
	Mean    float64  `json:"mean"`
	Max     *float64 `json:"max"`
	Min     *float64 `json:"min"`
	Samples int      `json:"samples"`
}

// The outcomes of a SaturationTest.
const (
	TestPassed  = "passed"
	TestFailed  = "failed"
	TestUnknown = "unknown"
)

// Saturation is the verdict on a load and each test behind it.
type Saturation struct {
	Over  bool             `json:"over"`
	Tests []SaturationTest `json:"tests"`
}

// SaturationTest is one sign of too much load, looked for.
type SaturationTest struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// USLFit is the universal scalability law fitted to the levels.
type USLFit struct {
	Withheld *Notice `json:"withheld"`
	// Points are the number of measurements fitted.
	Points         int       `json:"points"`
	Lambda         *float64  `json:"lambda_per_second"`
	LambdaInterval *Interval `json:"lambda_interval"`
	Sigma          *float64  `json:"sigma"`
	SigmaInterval  *Interval `json:"sigma_interval"`
	Kappa          *float64  `json:"kappa"`
	KappaInterval  *Interval `json:"kappa_interval"`
	// Peak is the concurrency at which the curve is highest, null where it only
	// approaches a ceiling.
	Peak         *float64  `json:"peak_concurrency"`
	PeakInterval *Interval `json:"peak_interval"`
	R2           *float64  `json:"r_squared"`
	// Residuals are measured minus fitted, in requests per second, by point in
	// the order of rising load.
	Residuals []float64 `json:"residuals"`
	// HoldOutMean and HoldOutWorst are the relative errors when each load is
	// predicted from the others.
	HoldOutMean  *float64 `json:"hold_out_mean"`
	HoldOutWorst *float64 `json:"hold_out_worst"`
	// Curve is the fitted curve for drawing, over the measured range.
	Curve []CurvePoint `json:"curve"`
}

// CurvePoint is a point of a fitted curve.
type CurvePoint struct {
	Concurrency       float64   `json:"concurrency"`
	RequestsPerSecond float64   `json:"requests_per_second"`
	Interval          *Interval `json:"interval"`
}

// The rules by which a knee is found.
const (
	KneeBounds   = "operational_bounds"
	KneePower    = "kleinrock_power"
	KneeKneedle  = "kneedle"
	KneeMarginal = "marginal_gain"
	KneeSLO      = "slo"
)

// Knee is where one rule puts the knee.
type Knee struct {
	Rule string `json:"rule"`
	// Concurrency is null where Withheld says why.
	Concurrency *float64  `json:"concurrency"`
	Interval    *Interval `json:"interval"`
	// How is the rule and its numbers in one line.
	How      string     `json:"how"`
	Withheld *Notice    `json:"withheld"`
	Evidence []Evidence `json:"evidence"`
}

// KneeRange is the span of the knees; Agree is true where the largest is at
// most twice the smallest.
type KneeRange struct {
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Agree bool     `json:"agree"`
}

// Capacity are the rates that one replica carries.
type Capacity struct {
	// XMax is the most it completes, XSustain the highest measured rate without
	// a sign of too much load, XSLO the highest measured rate at which every
	// objective holds, XPlan the smaller of both less the headroom.
	XMax     Rate `json:"x_max"`
	XSustain Rate `json:"x_sustain"`
	XSLO     Rate `json:"x_slo"`
	XPlan    Rate `json:"x_plan"`
}

// Rate is a request rate of one replica and why it is not higher.
type Rate struct {
	RequestsPerSecond *float64  `json:"requests_per_second"`
	Interval          *Interval `json:"interval"`
	// Concurrency is the load at which it is reached.
	Concurrency *float64 `json:"concurrency"`
	// LowerBound is true where the measured range ended before the limit.
	LowerBound bool `json:"lower_bound"`
	// Confidence is the stated confidence, null where none can be stated.
	Confidence *float64 `json:"confidence"`
	// Binding is what limits it.
	Binding  *Notice    `json:"binding"`
	Withheld *Notice    `json:"withheld"`
	Evidence []Evidence `json:"evidence"`
}

// NextLoad is a load worth measuring.
type NextLoad struct {
	Concurrency int    `json:"concurrency"`
	Why         string `json:"why"`
}
