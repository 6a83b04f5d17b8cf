package explain

import (
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// edgeText names the next value at which this trigger changes the size, and what
// forbids it to.
func edgeText(t record.ScalingTrigger, c record.ScalingChain) string {
	var parts []string
	percent := t.TargetType == string(hpa.Utilization)
	switch {
	case t.AddsAt == nil && c.Decision != nil && c.Decision.UpDisabled:
		parts = append(parts, "never adds: "+disabledText(c, true))
	case t.AddsAt == nil:
	case percent:
		// Percents are whole.
		parts = append(parts, "adds from "+number(*t.AddsAt)+"%")
	case t.ValueHigh == nil || *t.ValueHigh < *t.AddsAt:
		// Totals are in thousandths: above the one before it.
		parts = append(parts, "acts above "+number(*t.AddsAt-0.001))
	}
	switch {
	case t.RemovesAt == nil && c.Decision != nil && c.Decision.DownDisabled:
		parts = append(parts, "never removes: "+disabledText(c, false))
	case t.RemovesAt == nil && heldByFailure(t, c):
		parts = append(parts, "removes none while another fails")
	case t.RemovesAt == nil:
	case percent:
		parts = append(parts, "removes from "+number(*t.RemovesAt)+"% down"+othersText(t, c))
	case t.ValueLow != nil && *t.ValueLow > *t.RemovesAt:
		parts = append(parts, "removes from "+number(*t.RemovesAt)+" down"+othersText(t, c))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

// disabledText is what forbids a direction.
func disabledText(c record.ScalingChain, up bool) string {
	switch {
	case up && c.KEDA != nil && c.KEDA.Pause.ScaleOut:
		return "paused-scale-out"
	case up:
		return "scaleUp is disabled"
	case c.KEDA != nil && c.KEDA.Pause.ScaleIn:
		return "paused-scale-in"
	}
	return "scaleDown is disabled"
}

// heldByFailure says that another trigger failed: then no replica is removed.
func heldByFailure(t record.ScalingTrigger, c record.ScalingChain) bool {
	return c.Decision != nil && c.Decision.From > c.Decision.Min && t.Reason != string(hpa.MetricFailed) &&
		slices.ContainsFunc(c.Triggers, func(other record.ScalingTrigger) bool { return other.Reason == string(hpa.MetricFailed) })
}

// othersText says that others hold the size too: the largest proposal counts.
func othersText(t record.ScalingTrigger, c record.ScalingChain) string {
	for _, other := range c.Triggers {
		if other.Metric == t.Metric || c.Decision == nil {
			continue
		}
		if other.Proposes == nil || mostOf(*other.Proposes) >= c.Decision.From {
			return " if the others do"
		}
	}
	return ""
}
