package explain

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
)

// wantedCount: a metric that is the wanted number of replicas itself (target 1
// for each) adds none at a size from which the rest is within the tolerance. It
// is a warning where the size does stop there: where it is now, or on the way
// up from the minimum.
func (r triggerRules) wantedCount() {
	wanted, severity, when := int32(0), record.SeverityInfo, ""
	cron := r.source.Type == "cron"
	switch {
	case cron:
		n, err := strconv.ParseInt(r.source.Metadata["desiredReplicas"], 10, 32)
		if err != nil {
			return
		}
		wanted = min(int32(n), r.so.Max())
	case r.averaged() && r.trigger.Target == 1 && strings.Contains(r.source.Query(), "desired_replicas"):
		wanted, when = r.so.Max(), "at its maximum "
	default:
		return
	}
	stops := wanted
	for stops > 1 && float64(wanted)/float64(stops-1) <= 1+r.tolerance {
		stops--
	}
	if stops >= wanted {
		return
	}
	stays, at := fmt.Sprintf("adds none if the size ever is %s", rangeBetween(stops, wanted-1)), stops
	if low := max(r.so.HPAMin(), 1); cron && low < wanted {
		if end := climb(r.up, low, stops, wanted); end < wanted {
			stays, at, severity = fmt.Sprintf("stops at %d on the way up from %d", end, low), end, record.SeverityWarning
		}
	}
	if cron && r.size >= stops && r.size < wanted {
		stays, at, severity = fmt.Sprintf("adds none to the %d that there are", r.size), r.size, record.SeverityWarning
	}
	r.note(idCountTolerance, severity, "behavior.scaleUp.tolerance: 0 (Kubernetes 1.35 on), or metricType: Value with the count as threshold",
		"%sasks for %d replicas and %s: %d/%d = %s is within the tolerance of %s%%",
		when, wanted, stays, wanted, at, number(float64(wanted)/float64(at)), number(100*r.tolerance))
}

func rangeBetween(low, high int32) string {
	if low == high {
		return strconv.Itoa(int(low))
	}
	return fmt.Sprintf("%d to %d", low, high)
}

// climb returns the size at which the way up from a size ends: wanted, or the
// first from stops on. Each step is as large as the rules allow at once.
func climb(rules *autoscalingv2.HPAScalingRules, size, stops, wanted int32) int32 {
	for size < stops {
		next := min(stepUp(rules, size), wanted)
		if next <= size {
			return wanted
		}
		size = next
	}
	return size
}

// stepUp is the most that one step up leads to. Without a behavior that is
// twice the size, or 4.
func stepUp(rules *autoscalingv2.HPAScalingRules, size int32) int32 {
	if rules == nil {
		return max(2*size, 4)
	}
	policies := rules.Policies
	if len(policies) == 0 {
		policies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100}, {Type: autoscalingv2.PodsScalingPolicy, Value: 4}}
	}
	smallest := rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.MinChangePolicySelect
	if rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return size
	}
	var out int32
	for i, policy := range policies {
		to := int32(min(int64(size)+int64(policy.Value), math.MaxInt32))
		if policy.Type == autoscalingv2.PercentScalingPolicy {
			to = int32(min(math.Ceil(float64(size)*(1+float64(policy.Value)/100)), math.MaxInt32))
		}
		switch {
		case i == 0:
			out = to
		case smallest:
			out = min(out, to)
		default:
			out = max(out, to)
		}
	}
	return out
}

// upRules are the rules for steps up, nil where there is no behavior at all. A
// behavior without rules for them has the API server's.
func upRules(link chain.Chain) *autoscalingv2.HPAScalingRules {
	object := link.HPA
	if object == nil {
		object = plannedHPA(link)
	}
	behavior := object.Spec.Behavior
	switch {
	case behavior == nil:
		return nil
	case behavior.ScaleUp == nil:
		return &autoscalingv2.HPAScalingRules{}
	}
	return behavior.ScaleUp
}
