package knee

import (
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// Misses are what became of one objective in a case.
type Misses struct {
	Objective record.BenchSLO
	// Of are the requests that are over, Missed those of them that were not
	// within the objective, or failed.
	Of, Missed int
	// Effect is how many requests are worth one: requests that wait in one queue
	// miss together (stats.DesignEffect). 0 is 1.
	Effect float64
}

// Allowed is the share of requests that may miss.
func (m Misses) Allowed() float64 { return 1 - m.Objective.Percentile/100 }

// Bounds are those of the share that misses, each with the given confidence.
func (m Misses) Bounds(confidence float64) (low, high float64) {
	effect := max(m.Effect, 1)
	missed, of := int(float64(m.Missed)/effect+0.5), int(float64(m.Of)/effect)
	if m.Missed > 0 {
		missed = max(missed, 1)
	}
	return stats.ShareBounds(min(missed, of), of, confidence)
}

// Judge says whether the objectives hold, with the given confidence in each: by
// one-sided binomial bounds on the share of requests that miss, the rule by which
// MLPerf's runs may stop early, and with requests that miss together counted as
// fewer. sure is false, and the verdict undecided, where the requests do not do;
// last asks for the verdict of the majority then. binding is the objective that
// fails.
func Judge(misses []Misses, confidence float64, last bool) (verdict string, sure bool, binding string) {
	holds := len(misses) > 0
	for _, one := range misses {
		low, high := one.Bounds(confidence)
		if low > one.Allowed() {
			return record.KneeFails, true, one.Objective.String()
		}
		holds = holds && high <= one.Allowed()
	}
	if holds {
		return record.KneeHolds, true, ""
	}
	if !last || len(misses) == 0 || misses[0].Of == 0 {
		return record.KneeUndecided, false, ""
	}
	for _, one := range misses {
		if float64(one.Missed) > one.Allowed()*float64(one.Of) {
			return record.KneeFails, false, one.Objective.String()
		}
	}
	return record.KneeHolds, false, ""
}
