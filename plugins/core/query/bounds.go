package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds are the values that an expression can have.
type Bounds struct {
	Low, High float64
	// Summed: they are those of one series, and the expression is the sum of
	// all series.
	Summed bool
}

// BoundsOf returns the bounds of an expression by those of the metrics in it.
// ok is false for what is not understood: a sum without known bounds, an
// expression of more than two operands, most functions.
func BoundsOf(expr string, metric func(name string) (Bounds, bool)) (bounds Bounds, ok bool) {
	return boundsOf(expr, metric, 0)
}

func boundsOf(expr string, metric func(string) (Bounds, bool), depth int) (Bounds, bool) {
	expr = unwrap(expr)
	if expr == "" || depth > deepest {
		return Bounds{}, false
	}
	if operands, operators := split(expr); len(operators) > 0 {
		if len(operators) != 1 || len(operands) != 2 {
			return Bounds{}, false
		}
		return boundsOfPair(operands[0], operators[0], operands[1], metric, depth)
	}
	if number, err := strconv.ParseFloat(expr, 64); err == nil {
		return Bounds{Low: number, High: number}, true
	}
	if open := rangeAt(expr); open > 0 {
		return boundsOf(expr[:open], metric, depth+1)
	}
	call, isCall := parseCall(expr)
	if !isCall {
		if selector(expr) != Several {
			return Bounds{}, false
		}
		name, _, _ := strings.Cut(expr, "{")
		return metric(strings.TrimSpace(name))
	}
	same := []string{"avg", "max", "min", "avg_over_time", "max_over_time", "min_over_time", "last_over_time", "vector", "scalar"}
	if len(call.args) != 1 || call.name != "sum" && !slices.Contains(same, call.name) {
		return Bounds{}, false
	}
	inner, ok := boundsOf(call.args[0], metric, depth+1)
	switch {
	case !ok:
		return Bounds{}, false
	case call.name == "sum":
		inner.Summed = true
	case inner.Summed && !strings.HasSuffix(call.name, "_over_time"):
		return Bounds{}, false
	}
	return inner, true
}

// boundsOfPair: a number scales or shifts, "or" joins, a comparison filters.
func boundsOfPair(left, operator, right string, metric func(string) (Bounds, bool), depth int) (Bounds, bool) {
	a, okA := boundsOf(left, metric, depth+1)
	b, okB := boundsOf(right, metric, depth+1)
	if !okA || !okB {
		return Bounds{}, false
	}
	isNumber := func(b Bounds) bool { return b.Low == b.High && !b.Summed }
	summed := a.Summed || b.Summed
	switch {
	case strings.EqualFold(operator, "or"):
		return Bounds{min(a.Low, b.Low), max(a.High, b.High), summed}, true
	case operator == "*" && (isNumber(a) || isNumber(b)):
		x, y := a.Low*b.Low, a.High*b.High
		return Bounds{min(x, y), max(x, y), summed}, true
	case operator == "/" && isNumber(b) && b.Low != 0:
		x, y := a.Low/b.Low, a.High/b.Low
		return Bounds{min(x, y), max(x, y), summed}, !math.IsInf(x, 0) && !math.IsInf(y, 0)
	case summed:
		// What is added to a sum is not added to each series.
		return Bounds{}, false
	case operator == "+":
		return Bounds{Low: a.Low + b.Low, High: a.High + b.High}, true
	case operator == "-":
		return Bounds{Low: a.Low - b.High, High: a.High - b.Low}, true
	}
	return Bounds{}, false
}
