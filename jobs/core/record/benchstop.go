package record

import "github.com/kubectl-inference/kubectl-inference/jobs/core/failure"

// StopRules end a case before its time is over, when more time would teach
// nothing or hurt. The zero value has none.
type StopRules struct {
	// Interval ends a case once the interval of its request rate is within this
	// share of the rate on either side, such as 0.05.
	Interval float64 `json:"interval,omitempty"`
	// Errors ends a case once its share of failed requests is above the plan's
	// max_error_rate with 95 % confidence.
	Errors bool `json:"errors,omitempty"`
	// Saturated ends an open loop whose backlog grows (stats.DriftOver), and
	// leaves out closed loops of more requests in flight than one that brought no
	// more throughput and only more latency.
	Saturated bool `json:"saturated,omitempty"`
	// Objective ends a case once it is decided with this confidence, such as 0.95,
	// whether the plan's objectives hold.
	Objective float64 `json:"objective,omitempty"`
}

// Stops are the rules of a case of the plan.
func (p BenchPlan) Stops(c BenchCase) StopRules {
	switch {
	case c.Stop != nil:
		return *c.Stop
	case p.Stop != nil:
		return *p.Stop
	}
	return StopRules{}
}

func (s StopRules) validate() error {
	if s.Interval < 0 || s.Interval >= 1 || s.Objective < 0 || s.Objective >= 1 {
		return failure.New(failure.Usage, "give a share such as 0.05", "read bench plan: stop: interval and objective must be 0 to 1")
	}
	return nil
}

// The codes of CaseReport.Stopped.
const (
	StopInterval  = "interval_tight"
	StopErrors    = "error_limit"
	StopSaturated = "over_saturated"
	StopHeld      = "objective_held"
	StopMissed    = "objective_missed"
)

// ObjectiveCount is what became of one objective in a case: of the requests
// started in the window, those that were within its limit, and those that were
// not or that failed.
type ObjectiveCount struct {
	Objective BenchSLO `json:"objective"`
	Met       int      `json:"met"`
	Missed    int      `json:"missed"`
	// Effect is how many requests are worth one independent one, because those
	// that wait in one queue miss together (stats.DesignEffect).
	Effect float64 `json:"design_effect"`
}

// Backlog says what the number of requests in the system did in the window of an
// open loop.
type Backlog struct {
	// Drift is stable, at_capacity, over or unknown (stats.DriftOf); Score is the
	// growth in standard deviations of a queue at exactly capacity.
	Drift string  `json:"drift"`
	Score float64 `json:"score"`
	// First and Last are the mean numbers in flight in the first and the last
	// quarter of the window, Peak is the largest.
	First float64 `json:"first_quarter"`
	Last  float64 `json:"last_quarter"`
	Peak  float64 `json:"peak"`
}

// SkippedCase is a case of the plan that did not run, and why.
type SkippedCase struct {
	Case    string `json:"case"`
	Code    string `json:"code"`
	Message string `json:"message"`
}
