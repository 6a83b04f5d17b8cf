package record

// KindTuningPlan is the kind of a TuningPlan.
const KindTuningPlan = "TuningPlan"

// TuningPlan is a change of scaling thresholds: on which object, why, and how
// to take it back.
type TuningPlan struct {
	TypeMeta
	// Owner is the object that is patched: the one in which the thresholds
	// stay. It is not always the ScaledObject, whose own owner may write over
	// it.
	Owner TuningObject `json:"owner"`
	// ScaledObject is the scaler that the change reaches.
	ScaledObject TuningObject `json:"scaled_object"`
	// Managed names the tool that would write over a change in the cluster, ""
	// where none is known.
	Managed string `json:"managed_by"`
	// Model, Shape and Runs say what the thresholds were measured on.
	Model   string         `json:"model"`
	Shape   string         `json:"shape"`
	Runs    []string       `json:"runs"`
	Changes []TuningChange `json:"changes"`
	// Kept are the triggers that stay as they are, and why.
	Kept []TuningKept `json:"kept"`
	// Patch is a JSON Patch (RFC 6902) on Owner. Its test operations make it
	// fail when the object is not what the plan was made for. Undo is its
	// inverse.
	Patch []PatchOperation `json:"patch"`
	Undo  []PatchOperation `json:"undo"`
}

// TuningObject names an object of the cluster.
type TuningObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// TuningChange is one trigger's change.
type TuningChange struct {
	// Index is the trigger's place in the ScaledObject, Trigger what it is
	// called, Signal what it measures (Threshold.Trigger).
	Index   int    `json:"index"`
	Trigger string `json:"trigger"`
	Signal  string `json:"signal"`
	From    string `json:"from"`
	To      string `json:"to"`
	// MetricType is the metric type after the change, PreviousMetricType the
	// one before it.
	MetricType         string `json:"metric_type"`
	PreviousMetricType string `json:"previous_metric_type"`
	// ActsAboveBefore and ActsAboveAfter are the values, per replica, above
	// which the HPA adds a replica with its default tolerance.
	ActsAboveBefore *float64 `json:"acts_above_before"`
	ActsAboveAfter  float64  `json:"acts_above_after"`
	// Why is the rule and its numbers; Evidence the cases it rests on.
	Why      string     `json:"why"`
	Evidence []Evidence `json:"evidence"`
}

// TuningKept is a trigger that is not changed.
type TuningKept struct {
	Index   int    `json:"index"`
	Trigger string `json:"trigger"`
	Why     string `json:"why"`
}

// PatchOperation is one operation of a JSON Patch. Value is absent for "remove".
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}
