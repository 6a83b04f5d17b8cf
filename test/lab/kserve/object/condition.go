package object

import (
	"cmp"
	"slices"
	"time"
)

// Condition is a status condition in Knative's form, which both services use:
// one that is not of severity Info counts for readiness.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Severity           string `json:"severity,omitempty"`
	Reason             string `json:"reason,omitempty"`
	Message            string `json:"message,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}

// Values of [Condition.Status].
const (
	True    = "True"
	False   = "False"
	Unknown = "Unknown"
)

// Conditions is a set of conditions, sorted by type.
type Conditions []Condition

// Get returns the condition of a type, or one of status Unknown.
func (c Conditions) Get(kind string) Condition {
	for _, condition := range c {
		if condition.Type == kind {
			return condition
		}
	}
	return Condition{Type: kind, Status: Unknown}
}

// Set returns the conditions with one replaced or added. As in Knative any
// change of it, also one of the message alone, moves its transition time.
func (c Conditions) Set(condition Condition, now time.Time) Conditions {
	at := slices.IndexFunc(c, func(old Condition) bool { return old.Type == condition.Type })
	condition.LastTransitionTime = now.UTC().Format(time.RFC3339)
	if at < 0 {
		next := append(slices.Clone(c), condition)
		slices.SortFunc(next, func(a, b Condition) int { return cmp.Compare(a.Type, b.Type) })
		return next
	}
	old := c[at]
	old.LastTransitionTime = condition.LastTransitionTime
	if old == condition {
		return c
	}
	next := slices.Clone(c)
	next[at] = condition
	return next
}

// Drop returns the conditions without those of the given types.
func (c Conditions) Drop(kinds ...string) Conditions {
	return slices.DeleteFunc(slices.Clone(c), func(condition Condition) bool {
		return slices.Contains(kinds, condition.Type)
	})
}

// Summary returns the condition of type kind that sums up others: False with
// the first False one's reason, else Unknown with the first Unknown one's, else
// True.
func (c Conditions) Summary(kind string, of ...string) Condition {
	for _, status := range []string{False, Unknown} {
		for _, part := range of {
			if found := c.Get(part); found.Status == status {
				return Condition{Type: kind, Status: status, Reason: found.Reason, Message: found.Message}
			}
		}
	}
	return Condition{Type: kind, Status: True}
}
