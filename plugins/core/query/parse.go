package query

import (
	"slices"
	"strings"
)

// call is an aggregation or a function with its arguments.
type call struct {
	name     string
	args     []string
	grouping []string
	without  bool
}

// unwrap trims space and parentheses around the whole expression.
func unwrap(expr string) string {
	for {
		expr = strings.TrimSpace(expr)
		if !strings.HasPrefix(expr, "(") || closing(expr, 0) != len(expr)-1 {
			return expr
		}
		expr = expr[1 : len(expr)-1]
	}
}

// closing returns the index of what closes the bracket at open, -1 if nothing
// does. Strings are skipped.
func closing(expr string, open int) int {
	depth := 0
	for i := open; i < len(expr); i++ {
		switch expr[i] {
		case '"', '\'', '`':
			if i = stringEnd(expr, i); i < 0 {
				return -1
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// stringEnd returns the index of the quote that ends the string at start.
func stringEnd(expr string, start int) int {
	for i := start + 1; i < len(expr); i++ {
		switch {
		case expr[i] == '\\' && expr[start] != '`':
			i++
		case expr[i] == expr[start]:
			return i
		}
	}
	return -1
}

// topLevel calls visit at each byte outside of strings and brackets, until it
// returns false.
func topLevel(expr string, visit func(i int) bool) {
	for i := 0; i < len(expr); i++ {
		switch expr[i] {
		case '"', '\'', '`':
			if i = stringEnd(expr, i); i < 0 {
				return
			}
		case '(', '[', '{':
			if i = closing(expr, i); i < 0 {
				return
			}
		default:
			if !visit(i) {
				return
			}
		}
	}
}

// binary splits an expression at its outer operators. union says that one of
// them is "or", which adds series.
func binary(expr string) (operands []string, union bool) {
	operands, operators := split(expr)
	return operands, slices.ContainsFunc(operators, func(op string) bool { return strings.EqualFold(op, "or") })
}

// split returns the operands and the operators between them, as they stand: it
// knows no precedence.
func split(expr string) (operands, operators []string) {
	start := 0
	skip := -1
	topLevel(expr, func(i int) bool {
		if i < skip {
			return true
		}
		size := operatorAt(expr, i, start)
		if size == 0 {
			return true
		}
		if operand := strings.TrimSpace(expr[start:i]); operand != "" {
			operands = append(operands, operand)
		}
		operators = append(operators, expr[i:i+size])
		skip = i + size
		start = skip + matching(expr[skip:])
		skip = start
		return true
	})
	if rest := strings.TrimSpace(expr[start:]); rest != "" {
		operands = append(operands, rest)
	}
	return operands, operators
}

// operatorAt returns the length of the operator at i, 0 for none.
func operatorAt(expr string, i, start int) int {
	rest := expr[i:]
	for _, word := range []string{"and", "or", "unless", "atan2"} {
		if len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) && boundary(expr, i-1) && boundary(expr, i+len(word)) {
			return len(word)
		}
	}
	for _, two := range []string{"==", "!=", ">=", "<="} {
		if strings.HasPrefix(rest, two) {
			return 2
		}
	}
	switch expr[i] {
	case '*', '/', '%', '^', '>', '<':
		return 1
	case '+', '-':
		before := strings.TrimSpace(expr[start:i])
		exponent := i > 1 && (expr[i-1] == 'e' || expr[i-1] == 'E') && expr[i-2] >= '0' && expr[i-2] <= '9'
		if before != "" && !exponent && !strings.HasSuffix(before, " offset") {
			return 1
		}
	}
	return 0
}

func boundary(expr string, i int) bool {
	if i < 0 || i >= len(expr) {
		return true
	}
	c := expr[i]
	return c != '_' && c != ':' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// matching returns the length of the modifiers behind an operator: bool,
// on (...), ignoring (...), group_left (...).
func matching(rest string) int {
	length := 0
	for {
		trimmed := strings.TrimLeft(rest[length:], " \t\n")
		at := len(rest) - len(trimmed)
		found := false
		for _, word := range []string{"bool", "on", "ignoring", "group_left", "group_right"} {
			if !strings.HasPrefix(trimmed, word) || !boundary(trimmed, len(word)) {
				continue
			}
			end := at + len(word)
			after := strings.TrimLeft(rest[end:], " \t\n")
			if word != "bool" && strings.HasPrefix(after, "(") {
				if close := closing(after, 0); close >= 0 {
					end = len(rest) - len(after) + close + 1
				}
			}
			length, found = end, true
			break
		}
		if !found {
			return length
		}
	}
}

// parseCall reads NAME by (...) (ARGS) or NAME(ARGS) by (...).
func parseCall(expr string) (call, bool) {
	expr = strings.TrimSpace(expr)
	end := 0
	for end < len(expr) && !boundary(expr, end) {
		end++
	}
	parsed := call{name: strings.ToLower(expr[:end])}
	if end == 0 {
		return call{}, false
	}
	rest := parsed.takeGrouping(strings.TrimSpace(expr[end:]))
	if !strings.HasPrefix(rest, "(") {
		return call{}, false
	}
	close := closing(rest, 0)
	if close < 0 {
		return call{}, false
	}
	parsed.args = arguments(rest[1:close])
	rest = parsed.takeGrouping(strings.TrimSpace(rest[close+1:]))
	return parsed, strings.TrimSpace(rest) == ""
}

func (c *call) takeGrouping(rest string) string {
	for _, word := range []string{"by", "without"} {
		if len(rest) < len(word) || !strings.EqualFold(rest[:len(word)], word) || !boundary(rest, len(word)) {
			continue
		}
		after := strings.TrimSpace(rest[len(word):])
		close := -1
		if strings.HasPrefix(after, "(") {
			close = closing(after, 0)
		}
		if close < 0 {
			return rest
		}
		c.without = word == "without"
		c.grouping = []string{}
		for label := range strings.SplitSeq(after[1:close], ",") {
			if label = strings.TrimSpace(label); label != "" {
				c.grouping = append(c.grouping, label)
			}
		}
		return strings.TrimSpace(after[close+1:])
	}
	return rest
}

func arguments(text string) []string {
	var args []string
	start := 0
	topLevel(text, func(i int) bool {
		if text[i] == ',' {
			args = append(args, text[start:i])
			start = i + 1
		}
		return true
	})
	if last := text[start:]; strings.TrimSpace(last) != "" || len(args) > 0 {
		args = append(args, last)
	}
	return args
}
