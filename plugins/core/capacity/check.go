package capacity

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Check is a threshold that someone has, to be held against the measured
// signals. Trigger is one of record's trigger kinds.
type Check struct {
	Trigger   string
	Threshold float64
}

// TriggerNames lists the trigger kinds.
func TriggerNames() []string {
	var names []string
	for _, one := range triggers() {
		names = append(names, one.name)
	}
	return names
}

// run finds where a threshold acts. The HPA divides a summed signal by the
// replicas and does nothing while the ratio to the target is within its
// tolerance; both hold per replica, at any number of replicas.
func (c Check) run(levels []level, tolerance float64) record.ThresholdCheck {
	result := record.ThresholdCheck{
		Trigger: c.Trigger, Threshold: c.Threshold, ActsAbove: *number(c.Threshold * (1 + tolerance)), Loads: []record.TriggerLoad{},
	}
	for _, one := range triggers() {
		if one.name == c.Trigger {
			result.Loads = one.loads(levels, c.Threshold, tolerance)
		}
	}
	var last *record.TriggerLoad
	for i, at := range result.Loads {
		if at.Acts == nil {
			continue
		}
		last = &result.Loads[i]
		if *at.Acts && result.ActsFrom == nil {
			result.ActsFrom = number(at.Concurrency)
		}
	}
	switch {
	case last == nil:
		result.Verdict = "not known: the signal was not measured"
	case result.ActsFrom != nil:
		result.Verdict = fmt.Sprintf("acts from c=%s on", short(*result.ActsFrom))
	case *last.Ratio > 1-tolerance:
		result.Verdict = fmt.Sprintf("stays silent: %s at c=%s is ratio %.2f, within the %s %% tolerance",
			short(*last.Value), short(last.Concurrency), *last.Ratio, short(100*tolerance))
	default:
		result.Verdict = fmt.Sprintf("stays silent: %s at c=%s is below it", short(*last.Value), short(last.Concurrency))
	}
	return result
}
