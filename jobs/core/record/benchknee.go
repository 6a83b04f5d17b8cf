package record

import (
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// KneeSearch asks a run to find the highest rate that its objectives allow, in
// place of measuring a list of cases.
type KneeSearch struct {
	// Case is what its requests look like; its load is the search's to choose.
	Case BenchCase `json:"case"`
	// BudgetSeconds is the longest time that the search may take.
	BudgetSeconds float64 `json:"budget_seconds"`
	// Precision is how narrow the interval of the answer must get, as a share of
	// it, such as 0.1.
	Precision float64 `json:"precision"`
	// Confidence is that of each decision about a rate, such as 0.95.
	Confidence float64 `json:"confidence"`
	// MaxConcurrency bounds the closed loops by which it begins.
	MaxConcurrency int `json:"max_concurrency"`
}

func (k KneeSearch) validate(p BenchPlan) error {
	refuse := func(hint, format string, args ...any) error {
		return failure.New(failure.Usage, hint, "read bench plan: find_knee: "+format, args...)
	}
	switch {
	case len(p.SLOs) == 0:
		return refuse("give an objective, such as --slo p99_e2e=30s", "the knee is the highest rate at which an objective holds, and there is none")
	case len(p.Cases) > 0:
		return refuse("leave the cases out", "the search chooses its own cases")
	case !(k.BudgetSeconds > 0):
		return refuse("give a time such as 20m", "budget_seconds must be above 0")
	case !(k.Precision >= 0.01 && k.Precision <= 1):
		return refuse("0.1 is 10 %", "precision %v is not between 0.01 and 1", k.Precision)
	case !(k.Confidence >= 0.5 && k.Confidence < 1):
		return refuse("0.95 is 95 %", "confidence %v is not between 0.5 and 1", k.Confidence)
	case k.MaxConcurrency < 1 || k.MaxConcurrency > MaxConcurrency:
		return refuse("", "max_concurrency %d is not between 1 and %d", k.MaxConcurrency, MaxConcurrency)
	case k.Case.Arrival != nil || k.Case.Concurrency != 0 || k.Case.Requests != 0:
		return refuse("leave the load out", "the search chooses the load itself")
	case k.BudgetSeconds < 4*p.WarmupSeconds:
		return refuse("raise the budget, or shorten the warm-up", "a budget of %.3gs has no room for warm-ups of %.3gs", k.BudgetSeconds, p.WarmupSeconds)
	}
	probe := k.Case
	probe.Name, probe.Concurrency = "find-knee", 1
	return probe.validate(p)
}

// The verdicts of a KneeDecision.
const (
	KneeHolds     = "holds"
	KneeFails     = "fails"
	KneeUndecided = "undecided"
)

// KneeDecision is one step of a search: a case that it chose, and what the case
// showed. A search that is given the decisions so far goes on where they end.
type KneeDecision struct {
	Case string `json:"case"`
	// Why is why this load was chosen, Shown what it showed.
	Why   string `json:"why"`
	Shown string `json:"shown"`
	// Concurrency or Rate is the load.
	Concurrency int     `json:"concurrency,omitempty"`
	Rate        float64 `json:"rate,omitempty"`
	Verdict     string  `json:"verdict"`
	// Sure is false for a verdict by the mere majority of what was seen.
	Sure bool `json:"sure"`
	// Throughput is in completed requests a second. Requests were started in the
	// window.
	Throughput float64 `json:"throughput"`
	Requests   int     `json:"requests"`
	Seconds    float64 `json:"seconds"`
	// Low and High are the answer's interval after this step, in requests a
	// second; null while only closed loops were measured.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// The ends of a search: its interval was tight enough, its budget over, no rate
// found that holds; a case could not be used, or the run was stopped.
const (
	KneeTight   = "tight"
	KneeBudget  = "budget"
	KneeNothing = "nothing_holds"
	KneeBroken  = "broken"
	KneeStopped = "stopped"
)

// KneeResult is the answer of a search.
type KneeResult struct {
	// Rate is the highest rate in requests a second, of Poisson arrivals, at which
	// the objectives hold; null where none is known. Low and High hold it with
	// Confidence.
	Rate       *float64 `json:"rate"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Confidence float64  `json:"confidence"`
	// Saturation is the highest throughput of the closed loops.
	Saturation float64 `json:"saturation"`
	// Binding is what is missed above Rate: an objective as in "p99_e2e", or
	// "saturation".
	Binding string `json:"binding"`
	// Ended is why the search ended, Message the answer for people.
	Ended     string         `json:"ended"`
	Message   string         `json:"message"`
	Seconds   float64        `json:"seconds"`
	Decisions []KneeDecision `json:"decisions"`
}
