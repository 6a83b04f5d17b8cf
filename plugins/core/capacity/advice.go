package capacity

import (
	"fmt"
	"math"
	"slices"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// gapRatio is how far apart two neighbouring loads must be for one between
// them to be worth measuring.
const gapRatio = 1.3

// nextLoads proposes the loads that would narrow the answer most: between the
// last good and the first bad load, beyond a range that ended too early, and
// the single request that gives R(1). holds is the number of levels at which
// the objectives hold.
func nextLoads(levels []level, holds int, plan record.Rate) []record.NextLoad {
	var next []record.NextLoad
	add := func(n float64, format string, args ...any) {
		load := int(math.Round(n))
		taken := slices.ContainsFunc(next, func(l record.NextLoad) bool { return l.Concurrency == load }) ||
			slices.ContainsFunc(levels, func(l level) bool { return l.Concurrency == float64(load) })
		if load >= 1 && !taken {
			next = append(next, record.NextLoad{Concurrency: load, Why: fmt.Sprintf(format, args...)})
		}
	}
	for i := 1; i < len(levels); i++ {
		good, bad := levels[i-1], levels[i]
		if bad.Concurrency < gapRatio*good.Concurrency {
			continue
		}
		switch {
		case holds == i:
			add(math.Sqrt(good.Concurrency*bad.Concurrency), "an objective breaks between %s and %s", good.at(), bad.at())
		case bad.Saturation.Over && !good.Saturation.Over:
			add(math.Sqrt(good.Concurrency*bad.Concurrency), "saturation begins between %s and %s", good.at(), bad.at())
		}
	}
	last := levels[len(levels)-1]
	if rising(levels) && !last.Saturation.Over {
		add(2*last.Concurrency, "beyond %s the curve is not known", last.at())
	}
	if at := plan.Concurrency; at != nil {
		if below, above, ok := around(levels, *at); ok && above.Concurrency >= gapRatio*below.Concurrency {
			add(math.Sqrt(below.Concurrency*above.Concurrency), "the planned load lies between %s and %s", below.at(), above.at())
		}
	}
	if levels[0].Concurrency > 1 {
		add(1, "a single request gives R(1), which the bounds need")
	}
	return next
}

// warnings are what to keep in mind with this shape's numbers.
func warnings(levels []level, cases []measured) []record.Notice {
	var all []record.Notice
	var thin []level
	for _, l := range levels {
		if at, ok := l.Latencies[record.TriggerP99E2E]; ok && !at.Confident {
			thin = append(thin, l)
		}
	}
	if len(thin) > 0 {
		where := loadList(thin)
		if len(thin) == len(levels) && len(levels) > 1 {
			where = "every load"
		}
		all = append(all, record.Notice{Code: "thin_p99", Message: fmt.Sprintf(
			"p99 at %s rests on fewer than the %d requests that it needs", where, Needed(99, sureOfPercentile))})
	}
	unknown := slices.ContainsFunc(cases, func(m measured) bool { return m.report.Server[record.SignalReplicas] == nil })
	if unknown {
		all = append(all, record.Notice{Code: "replicas_unknown", Message: "the number of replicas was not recorded: everything here takes it as one"})
	}
	all = append(all, record.Notice{Code: "closed_loop", Message: "the load was a closed loop: that a backlog stays bounded at X_sustain was not tested"})
	return append(all, passedOn(cases)...)
}

// passedOn are the cases' own warnings, one for each code. That p99 is thin is
// said for all loads at once already.
func passedOn(cases []measured) []record.Notice {
	var all []record.Notice
	more := map[string]int{}
	for _, one := range cases {
		for _, finding := range one.report.Validity.Warnings {
			first := slices.IndexFunc(all, func(n record.Notice) bool { return n.Code == finding.Code })
			switch {
			case finding.Code == "low_n":
			case first < 0:
				all = append(all, record.Notice(finding))
			case all[first].Message != finding.Message:
				more[finding.Code]++
			}
		}
	}
	for i, warning := range all {
		if n := more[warning.Code]; n > 0 {
			all[i].Message += fmt.Sprintf(" (and the like in %d more cases)", n)
		}
	}
	return all
}
