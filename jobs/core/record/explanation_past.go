package record

import "time"

// ScalingPast is what else is known of a past moment.
type ScalingPast struct {
	// Asked is the moment that was asked for.
	Asked time.Time `json:"asked"`
	// Values are what the triggers' own queries give for the time.
	Values []FreshValue `json:"values"`
	// Then is what became of the size; null where sizes were not scraped.
	Then *PastSize `json:"then"`
}

// PastSize is the first scrape after a moment that found another size.
type PastSize struct {
	Time time.Time `json:"time"`
	// Replicas is null where no other size was found until Time.
	Replicas *int32 `json:"replicas"`
}
