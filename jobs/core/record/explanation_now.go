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

// FreshValue is one trigger's value as its server has it.
type FreshValue struct {
	Index int    `json:"index"`
	Label string `json:"label"`
	// Value is null where it could not be read; Error then says why.
	Value *float64 `json:"value"`
	Error string   `json:"error"`
	// Via is "proxy" (through the API server) or "direct".
	Via string `json:"via"`
}
