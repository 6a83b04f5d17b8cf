package query

import (
	"slices"
	"strconv"
	"strings"
)

// Series says how many series an expression can return.
type Series string

const (
	// Scalar is a number, which is no series at all.
	Scalar Series = "scalar"
	// One: at most one series, however many pods there are.
	One Series = "one"
	// Several: one series for each value of some label.
	Several Series = "several"
	// Unknown: the expression was not understood.
	Unknown Series = "unknown"
)

// Count says how many series an expression can return.
func Count(expr string) Series { return count(expr, 0) }

// deepest bounds the nesting of expressions.
const deepest = 40

func count(expr string, depth int) Series {
	expr = unwrap(expr)
	if expr == "" || depth > deepest {
		return Unknown
	}
	if operands, union := binary(expr); len(operands) > 1 {
		return combined(operands, union, depth)
	}
	if expr[0] == '-' || expr[0] == '+' {
		return count(expr[1:], depth+1)
	}
	if open := rangeAt(expr); open > 0 {
		return count(expr[:open], depth+1)
	}
	if _, err := strconv.ParseFloat(expr, 64); err == nil {
		return Scalar
	}
	call, ok := parseCall(expr)
	if !ok {
		return selector(expr)
	}
	switch {
	case call.name == "scalar", call.name == "time", call.name == "pi":
		return Scalar
	case call.name == "vector", call.name == "absent", call.name == "absent_over_time":
		return One
	case call.name == "topk", call.name == "bottomk":
		if len(call.args) > 0 && strings.TrimSpace(call.args[0]) == "1" && call.grouping == nil {
			return One
		}
		return Several
	case call.name == "count_values":
		return Several
	case slices.Contains(aggregators(), call.name):
		return grouped(call)
	case call.name == "histogram_quantile":
		return quantile(call, depth)
	}
	return ofArguments(call, depth)
}

// rangeAt returns where the range or subquery at the end starts, -1 without one.
func rangeAt(expr string) int {
	if !strings.HasSuffix(expr, "]") {
		return -1
	}
	for i := range len(expr) {
		if expr[i] == '[' && closing(expr, i) == len(expr)-1 {
			return i
		}
	}
	return -1
}

func aggregators() []string {
	return []string{"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile"}
}

func grouped(call call) Series {
	if call.without || len(call.grouping) > 0 {
		return Several
	}
	return One
}

// quantile: the bucket label le goes into the quantile, any other stays.
func quantile(call call, depth int) Series {
	if len(call.args) != 2 {
		return Unknown
	}
	inner, ok := parseCall(unwrap(call.args[1]))
	switch {
	case ok && slices.Contains(aggregators(), inner.name) && !inner.without:
		if slices.ContainsFunc(inner.grouping, func(label string) bool { return label != "le" }) {
			return Several
		}
		return One
	case count(call.args[1], depth+1) == Unknown:
		return Unknown
	}
	return Several
}

// ofArguments: a function returns as many series as it is given.
func ofArguments(call call, depth int) Series {
	most := Unknown
	for _, arg := range call.args {
		if strings.HasPrefix(strings.TrimSpace(arg), `"`) {
			continue
		}
		switch count(arg, depth+1) {
		case Several:
			return Several
		case One:
			most = One
		case Scalar:
			if most == Unknown {
				most = Scalar
			}
		}
	}
	return most
}

func combined(operands []string, union bool, depth int) Series {
	var kinds []Series
	for _, operand := range operands {
		kinds = append(kinds, count(operand, depth+1))
	}
	has := func(kind Series) bool { return slices.Contains(kinds, kind) }
	switch {
	case has(Unknown):
		return Unknown
	case union && has(Several):
		return Several
	case has(One):
		return One
	case has(Several):
		return Several
	}
	return Scalar
}

// selector: a plain selector returns a series for each target that is scraped.
func selector(expr string) Series {
	name := expr
	if at := strings.IndexAny(expr, "{["); at >= 0 {
		name = expr[:at]
	}
	name = strings.TrimSpace(name)
	if name == "" && strings.HasPrefix(expr, "{") {
		return Several
	}
	for i, r := range name {
		letter := r == '_' || r == ':' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
		if !letter && (i == 0 || r < '0' || r > '9') {
			return Unknown
		}
	}
	if name == "" {
		return Unknown
	}
	return Several
}
