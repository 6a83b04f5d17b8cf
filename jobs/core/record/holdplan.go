package record

import (
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// KindHoldPlan is the kind of a HoldPlan.
const KindHoldPlan = "HoldPlan"

// HoldPlan says how the replicas of a target are held still while a Job runs,
// and how that is undone. It holds what was there before, so that whoever has
// the plan can restore it: the plan lies in the spec of the Job that carries it
// out, where it outlives every pod.
type HoldPlan struct {
	TypeMeta
	// Run is the run for whose sake scaling is held, Job its Job in the same
	// namespace: when that has ended or is gone, the hold is over.
	Run string `json:"run"`
	Job string `json:"job"`
	// Replicas is the number that is held.
	Replicas int32      `json:"replicas"`
	Object   HoldObject `json:"object"`
	// Changes are fields of Object.
	Changes []HoldChange `json:"changes"`
	// StartSeconds is how long the Job may take to appear, Seconds how long the
	// hold lasts at most, both from the start of the hold.
	StartSeconds float64 `json:"start_seconds"`
	Seconds      float64 `json:"seconds"`
}

// HoldObject is the object whose owner lets the number of replicas be held.
type HoldObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Resource is the kind's name in the API's paths.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// HoldChange is one field: Before is restored where the field still is Held.
// Null stands for a field that is not there.
type HoldChange struct {
	Path   []string `json:"path"`
	Before any      `json:"before"`
	Held   any      `json:"held"`
}

// HoldEnd is the result of a hold.
type HoldEnd struct {
	Run string `json:"run"`
	// Restored says that every field is as it was before the hold. Left are the
	// fields that somebody else has changed meanwhile: they are left alone.
	Restored bool     `json:"restored"`
	Left     []string `json:"left"`
	// Why the hold ended.
	Why string `json:"why"`
}

// Validate refuses a plan that cannot be carried out.
func (p HoldPlan) Validate() error {
	refuse := func(what string) error {
		return failure.New(failure.Usage, "it is made by `kubectl inference bench --hold-scaling`", "read hold plan: %s", what)
	}
	o := p.Object
	switch {
	case p.Run == "" || p.Job == "":
		return refuse("it names no run or no Job")
	case o.APIVersion == "" || o.Resource == "" || o.Namespace == "" || o.Name == "":
		return refuse("it names no object")
	case len(p.Changes) == 0 || slices.ContainsFunc(p.Changes, func(c HoldChange) bool { return len(c.Path) == 0 || c.Held == nil }):
		return refuse("it changes nothing")
	case !(p.Seconds > 0) || !(p.StartSeconds > 0):
		return refuse("it has no end")
	}
	return nil
}

// String names the object as kubectl does.
func (o HoldObject) String() string { return strings.ToLower(o.Kind) + "/" + o.Name }
