package record

// ScalingWhatIf is the same model with some inputs changed. Today's side is
// that of the chain itself.
type ScalingWhatIf struct {
	// Changes are the changes as they were asked for, such as "s0.value=4".
	Changes []string `json:"changes"`
	// Replicas are the counts with the changes.
	Replicas ReplicaCounts    `json:"replicas"`
	Triggers []ScalingTrigger `json:"triggers"`
	// Decision is that of the next sync.
	Decision *ScalingDecision `json:"decision"`
	// KEDA is KEDA's own loop with the changes; null without a ScaledObject.
	KEDA *KEDALoop `json:"keda"`
	// Notes say what the answer supposes, and which change has no effect.
	Notes []string `json:"notes"`
	// SettlesToday and Settles say where the size goes in the end, without and
	// with the changes; null where an input is unknown.
	SettlesToday *SettledSize `json:"settles_today"`
	Settles      *SettledSize `json:"settles"`
}

// SettledSize is the size at which syncs stop changing anything, if every
// value stays as it is and each new pod is Ready at once.
type SettledSize struct {
	Replicas CountRange `json:"replicas"`
	// AfterSeconds is when the last change happens, counted from the next
	// sync, with a window down that has just seen today's size.
	AfterSeconds float64 `json:"after_seconds"`
	// Path has each change of size on the way.
	Path []SizeAt `json:"path"`
	// Unsettled is true where the size still changed when the look ahead ended.
	Unsettled bool `json:"unsettled"`
	// Estimate is true where a metric of pods is taken to stay the same in all,
	// spread evenly over as many pods as there are.
	Estimate bool `json:"estimate"`
}

// SizeAt is a size and the seconds until it is reached.
type SizeAt struct {
	Seconds  float64 `json:"seconds"`
	Replicas int32   `json:"replicas"`
}
