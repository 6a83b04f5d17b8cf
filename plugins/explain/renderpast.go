package explain

import (
	"fmt"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderPast writes of which moment the rest is, and what became of it.
func renderPast(text *strings.Builder, e record.ScalingExplanation, c record.ScalingChain) {
	if c.Past == nil || e.AsOf.Time == nil {
		return
	}
	fmt.Fprintf(text, "\n%s %s, the last scrape before %s\n", term.Bold("AS OF"), dateText(*e.AsOf.Time), clockText(c.Past.Asked))
	if then := c.Past.Then; then != nil && then.Replicas != nil {
		fmt.Fprintf(text, "  then           the size was found at %d by %s\n", *then.Replicas, clockText(then.Time))
	} else if then != nil {
		fmt.Fprintf(text, "  then           no other size was found until %s\n", clockText(then.Time))
	}
	for _, value := range c.Past.Values {
		name := failure.Clean(value.Label)
		if value.Index != nil {
			name = fmt.Sprintf("s%d %s", *value.Index, name)
		}
		switch {
		case value.Value == nil:
			fmt.Fprintf(text, "  %s has no value of that time: %s\n", name, failure.Clean(value.Error))
		case value.Note != "":
			fmt.Fprintf(text, "  %s gave %s; %s\n", name, number(*value.Value), failure.Clean(value.Note))
		default:
			fmt.Fprintf(text, "  %s gave %s\n", name, number(*value.Value))
		}
	}
}
