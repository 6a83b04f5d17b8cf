package query

import "fmt"

// Broken says what no parser accepts in an expression: brackets and quotes that
// do not match, or nothing at all; "" where neither is found. It is no parser:
// much that Prometheus refuses passes.
func Broken(expr string) string {
	pairs := map[byte]byte{')': '(', ']': '[', '}': '{'}
	var open []byte
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; c {
		case '#':
			// A comment ends with its line.
			for i < len(expr) && expr[i] != '\n' {
				i++
			}
		case '"', '\'', '`':
			if i = stringEnd(expr, i); i < 0 {
				return fmt.Sprintf("a %c has no end", c)
			}
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != pairs[c] {
				return fmt.Sprintf("a %c closes nothing", c)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("a %c is not closed", open[len(open)-1])
	}
	return ""
}
