package explain

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/query"
)

// lintSiblings looks whether the pod pattern of a trigger matches the pods of
// another workload that was read too, such as its canary or its prefill part:
// that load is counted here. It takes the place of what podPattern supposes.
func lintSiblings(chains []chain.Chain, out []record.ScalingChain) {
	for i, link := range chains {
		if link.ScaledObject == nil {
			continue
		}
		warnings := &out[i].Warnings
		for index, source := range link.ScaledObject.Spec.Triggers {
			metric := source.MetricName(index)
			for pattern, taken := range siblingsOf(source.Query(), link.Target, chains) {
				*warnings = slices.DeleteFunc(*warnings, func(f record.Finding) bool { return f.ID == idPodPattern && f.Trigger == metric })
				*warnings = append(*warnings, record.Finding{
					ID: idPodPattern, Severity: record.SeverityWarning, Trigger: metric, Fix: patternFix(link.Target),
					Message: fmt.Sprintf("s%d %s selects pod=~%q, which matches the pods of %s too, such as %s: their load is counted here",
						index, source.Label(), pattern, strings.Join(taken, " and "), taken[0]+strings.TrimPrefix(podOf(link.Target), link.Target.Name)),
				})
			}
		}
		slices.SortStableFunc(*warnings, func(a, b record.Finding) int { return severityRank(b.Severity) - severityRank(a.Severity) })
	}
}

// siblingsOf are the pod patterns of a query that match other workloads' pods,
// with the names of those that the same selector does not exclude.
func siblingsOf(expr string, own chain.Ref, chains []chain.Chain) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, selection := range query.Selections(expr, "pod") {
			for _, pattern := range selection.Patterns {
				taken := slices.DeleteFunc(siblingsIn(pattern, own, chains), func(name string) bool {
					return selection.Excludes(name + strings.TrimPrefix(podOf(own), own.Name))
				})
				if len(taken) > 0 && !yield(pattern, taken) {
					return
				}
			}
		}
	}
}

// siblingsIn names the other workloads of the namespace whose pods a pattern
// matches, where it was written for the pods of own.
func siblingsIn(pattern string, own chain.Ref, chains []chain.Chain) []string {
	matcher, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil || !matcher.MatchString(podOf(own)) {
		return nil
	}
	var names []string
	for _, other := range chains {
		target := other.Target
		if target.Namespace == own.Namespace && target.Name != own.Name && !slices.Contains(names, target.Name) && matcher.MatchString(podOf(target)) {
			names = append(names, target.Name)
		}
	}
	return names
}

// podOf is a name as a workload's pods have them: a Deployment's with two
// hashes, those of others with a number.
func podOf(workload chain.Ref) string {
	if numbered(workload) {
		return workload.Name + "-0"
	}
	return workload.Name + "-6d4cf56db6-x7k2p"
}

func numbered(workload chain.Ref) bool {
	return workload.Kind == "StatefulSet" || workload.Kind == "LeaderWorkerSet"
}

// patternFix matches the workload's own pods and nothing that is called
// similarly.
func patternFix(workload chain.Ref) string {
	own := "-[a-z0-9]+-[a-z0-9]{5}"
	if numbered(workload) {
		own = "-[0-9]+"
	}
	return fmt.Sprintf(`pod=~"%s%s"`, workload.Name, own)
}
