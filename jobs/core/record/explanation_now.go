package record

import "time"

// ScalingNow is what the triggers' own servers answer now, and what the next
// sync would make of it.
type ScalingNow struct {
	ReadAt time.Time    `json:"read_at"`
	Values []FreshValue `json:"values"`
	// Decision has the fresh values in the place of the controller's; values
	// that could not be read stay the controller's. It is null where none was
	// read.
	Decision *ScalingWhatIf `json:"decision"`
}

// FreshValue is one metric's value as its server has it.
type FreshValue struct {
	// Index is the trigger's; null for a metric that is no trigger's own.
	Index *int   `json:"index"`
	Label string `json:"label"`
	// Metric is the metric's name in the HPA; "" where the HPA has none.
	Metric string `json:"metric"`
	// Value is null where it could not be read; Error then says why. Of a metric
	// of pods it is the sum over all that have a sample.
	Value *float64 `json:"value"`
	// Pods counts the pods with a sample; null for other metrics.
	Pods  *int32 `json:"pods"`
	Error string `json:"error"`
	// Via is "proxy" (a service, through the API server), "port-forward",
	// "direct", or the API group of a metric: metrics.k8s.io,
	// custom.metrics.k8s.io or external.metrics.k8s.io. It is "" where nobody
	// was asked.
	Via string `json:"via"`
	// Note says what is different from how KEDA reads it, or odd about it; ""
	// where nothing is.
	Note string `json:"note"`
}
