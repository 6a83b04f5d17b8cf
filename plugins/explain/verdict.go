package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// verdict is a failure where --fail-on is given and findings are that grave.
func (o *options) verdict(chains []record.ScalingChain) error {
	if o.failOn == "" {
		return nil
	}
	counts := map[string]int{}
	for _, c := range chains {
		for _, finding := range c.Warnings {
			counts[finding.Severity]++
		}
	}
	var found []string
	for _, severity := range []string{record.SeverityError, record.SeverityWarning} {
		if n := counts[severity]; n > 0 && severityRank(severity) >= severityRank(o.failOn) {
			found = append(found, fmt.Sprintf("%d %s", n, severity))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return failure.New(failure.Differs, "", "lint with --fail-on=%s: %s", o.failOn, strings.Join(found, ", "))
}
