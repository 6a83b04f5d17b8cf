package query

import (
	"regexp"
	"strconv"
)

// Selection is what one selector, {...}, asks of one label.
type Selection struct {
	// Patterns are the regular expressions that it must match.
	Patterns []string
	// Not are the regular expressions that it must not match.
	Not []string
}

// Excludes says that a value of the label is excluded.
func (s Selection) Excludes(value string) bool {
	for _, pattern := range s.Not {
		if matcher, err := regexp.Compile("^(?:" + pattern + ")$"); err == nil && matcher.MatchString(value) {
			return true
		}
	}
	return false
}

// Selections returns what each selector of the expression asks of a label, of
// those that match it against a regular expression.
func Selections(expr, label string) []Selection {
	matcher := regexp.MustCompile(`\b` + regexp.QuoteMeta(label) + `\s*(=~|!~|!=)\s*"((?:[^"\\]|\\.)*)"`)
	var selections []Selection
	for i := 0; i < len(expr); i++ {
		switch expr[i] {
		case '"', '\'', '`':
			if i = stringEnd(expr, i); i < 0 {
				return selections
			}
		case '{':
			end := closing(expr, i)
			if end < 0 {
				return selections
			}
			var selection Selection
			for _, found := range matcher.FindAllStringSubmatch(expr[i:end], -1) {
				value, err := strconv.Unquote(`"` + found[2] + `"`)
				if err != nil {
					value = found[2]
				}
				switch found[1] {
				case "=~":
					selection.Patterns = append(selection.Patterns, value)
				case "!~":
					selection.Not = append(selection.Not, value)
				default:
					selection.Not = append(selection.Not, regexp.QuoteMeta(value))
				}
			}
			if len(selection.Patterns) > 0 {
				selections = append(selections, selection)
			}
			i = end
		}
	}
	return selections
}

// Patterns returns the regular expressions that label is matched against.
func Patterns(expr, label string) []string {
	var patterns []string
	for _, selection := range Selections(expr, label) {
		patterns = append(patterns, selection.Patterns...)
	}
	return patterns
}
