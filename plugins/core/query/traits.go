package query

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Outer returns the name of the outermost aggregation or function, "" for an
// arithmetic expression or a plain selector.
func Outer(expr string) string {
	expr = unwrap(expr)
	if operands, _ := binary(expr); len(operands) > 1 {
		return ""
	}
	parsed, ok := parseCall(expr)
	if !ok {
		return ""
	}
	return parsed.name
}

// Divided returns the two sides of an expression that is one division; ok is
// false for any other.
func Divided(expr string) (over, under string, ok bool) {
	expr = unwrap(expr)
	operands, _ := binary(expr)
	if len(operands) != 2 {
		return "", "", false
	}
	between := strings.TrimSpace(expr[len(operands[0]):])
	return operands[0], operands[1], strings.HasPrefix(between, "/")
}

// PerPod says that a divisor counts pods or replicas.
func PerPod(under string) bool {
	outer := Outer(under)
	if outer == "scalar" {
		if parsed, ok := parseCall(unwrap(under)); ok && len(parsed.args) == 1 {
			return PerPod(parsed.args[0])
		}
	}
	return outer == "count" || strings.Contains(under, "kube_deployment_status_replicas") || strings.Contains(under, "kube_deployment_spec_replicas") ||
		strings.Contains(under, "kube_horizontalpodautoscaler_status_current_replicas")
}

// Window returns the longest range that the expression looks back over, 0 for
// none: its value answers to a change by that much late.
func Window(expr string) time.Duration {
	var longest time.Duration
	for _, found := range regexp.MustCompile(`\[([0-9a-z]+)(?::[0-9a-z]*)?\]`).FindAllStringSubmatch(expr, -1) {
		longest = max(longest, duration(found[1]))
	}
	return longest
}

// duration reads Prometheus durations such as 5m, 1h30m and 500ms.
func duration(text string) time.Duration {
	units := map[string]time.Duration{
		"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour,
		"d": 24 * time.Hour, "w": 7 * 24 * time.Hour, "y": 365 * 24 * time.Hour,
	}
	var total time.Duration
	for _, part := range regexp.MustCompile(`([0-9]+)(ms|[smhdwy])`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseInt(part[1], 10, 32)
		if err != nil {
			return 0
		}
		total += time.Duration(n) * units[part[2]]
	}
	return total
}

// TimesPods says that an expression is a product with a count of pods: what
// was measured for one replica is multiplied back.
func TimesPods(expr string) bool {
	operands, operators := split(unwrap(expr))
	return len(operands) == 2 && len(operators) == 1 && operators[0] == "*" && (PerPod(operands[0]) || PerPod(operands[1]))
}

// Arithmetic says that the outermost of an expression is an operator.
func Arithmetic(expr string) bool {
	_, operators := split(unwrap(expr))
	return len(operators) > 0
}
