package record

// The trigger kinds of a Threshold. The first three are BenchSignals, summed
// over the replicas and divided by their number (AverageValue); the others are
// a percentile in seconds, which is not divided (Value).
const (
	TriggerWaiting = SignalWaiting
	TriggerKV      = SignalKVCacheUsage
	TriggerRunning = SignalRunning
	TriggerP99E2E  = "p99_e2e"
	TriggerP99TTFT = "p99_ttft"
)

// The metric types of a trigger, as the HPA spells them.
const (
	MetricTypeAverageValue = "AverageValue"
	MetricTypeValue        = "Value"
)

// Threshold is a proposed trigger target, or why there is none.
type Threshold struct {
	Trigger    string `json:"trigger"`
	MetricType string `json:"metric_type"`
	Unit       string `json:"unit"`
	// Threshold is the target to set. ActsAbove is the value, per replica for
	// AverageValue, above which the HPA really adds a replica.
	Threshold *float64 `json:"threshold"`
	ActsAbove *float64 `json:"acts_above"`
	// Interval is the span that the two neighbouring loads leave for Threshold.
	Interval *Interval `json:"interval"`
	// Concurrency and RequestsPerSecond are the load of one replica at which it
	// is meant to act: the planned load.
	Concurrency       *float64 `json:"concurrency"`
	RequestsPerSecond *float64 `json:"requests_per_second"`
	// How says which rule gave the number.
	How string `json:"how"`
	// Loads are the signal at every level, and whether the threshold acts.
	Loads    []TriggerLoad `json:"loads"`
	Withheld *Notice       `json:"withheld"`
	// Evidence are the cases on both sides of the planned load.
	Evidence []Evidence `json:"evidence"`
	Warnings []Notice   `json:"warnings"`
}

// TriggerLoad is a signal at one level. Value is null where it is not known,
// Acts then as well.
type TriggerLoad struct {
	Concurrency float64  `json:"concurrency"`
	Value       *float64 `json:"value"`
	// Ratio is Value over the threshold, null where there is none.
	Ratio *float64 `json:"ratio"`
	Acts  *bool    `json:"acts"`
}

// ThresholdCheck holds a threshold that someone has against the levels.
type ThresholdCheck struct {
	Trigger   string        `json:"trigger"`
	Threshold float64       `json:"threshold"`
	ActsAbove float64       `json:"acts_above"`
	Loads     []TriggerLoad `json:"loads"`
	// ActsFrom is the lowest measured load at which it acts, null where it
	// stays silent at every load at which the signal is known.
	ActsFrom *float64 `json:"acts_from"`
	// Verdict is the finding for people.
	Verdict string `json:"verdict"`
}
