package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// setBehavior applies behavior.scaleUp.FIELD or behavior.scaleDown.FIELD, with
// the API server's own limits.
func setBehavior(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, key, value string) error {
	parts := strings.Split(key, ".")
	if len(parts) != 3 {
		return fmt.Errorf("not behavior.scaleUp.FIELD or behavior.scaleDown.FIELD")
	}
	var rules **autoscalingv2.HPAScalingRules
	switch parts[1] {
	case "scaleUp":
		rules = &behavior.ScaleUp
	case "scaleDown":
		rules = &behavior.ScaleDown
	default:
		return fmt.Errorf("a behavior has scaleUp and scaleDown, not %q", parts[1])
	}
	if *rules == nil {
		*rules = &autoscalingv2.HPAScalingRules{}
	}
	switch parts[2] {
	case "stabilizationWindowSeconds":
		n, err := strconv.ParseInt(strings.TrimSuffix(value, "s"), 10, 32)
		if err != nil || n < 0 || n > 3600 {
			return fmt.Errorf("a window is 0 to 3600 seconds")
		}
		window := int32(n)
		(*rules).StabilizationWindowSeconds = &window
	case "selectPolicy":
		policy := autoscalingv2.ScalingPolicySelect(value)
		switch policy {
		case autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect:
		default:
			return fmt.Errorf("a selectPolicy is Max, Min or Disabled")
		}
		(*rules).SelectPolicy = &policy
	case "tolerance":
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() < 0 {
			return fmt.Errorf("a tolerance is a fraction such as 0.05")
		}
		(*rules).Tolerance = &quantity
	case "policies":
		policies, err := parsePolicies(value)
		if err != nil {
			return err
		}
		(*rules).Policies = policies
	default:
		return fmt.Errorf("a direction has no %q", parts[2])
	}
	return nil
}

// parsePolicies reads policies such as "100%/30s,4/15s".
func parsePolicies(text string) ([]autoscalingv2.HPAScalingPolicy, error) {
	var policies []autoscalingv2.HPAScalingPolicy
	for one := range strings.SplitSeq(text, ",") {
		amount, period, found := strings.Cut(strings.TrimSpace(one), "/")
		policy := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy}
		if strings.HasSuffix(amount, "%") {
			policy.Type, amount = autoscalingv2.PercentScalingPolicy, strings.TrimSuffix(amount, "%")
		}
		value, err := strconv.ParseInt(amount, 10, 32)
		duration, periodErr := time.ParseDuration(period)
		if !found || err != nil || periodErr != nil || value <= 0 || duration < time.Second || duration > 1800*time.Second {
			return nil, fmt.Errorf("policies are written as 100%%/30s or 4/15s, with 1s to 1800s, and commas between them")
		}
		policy.Value, policy.PeriodSeconds = int32(value), int32(duration.Seconds())
		policies = append(policies, policy)
	}
	return policies, nil
}
