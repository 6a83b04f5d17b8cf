package sync

import (
	"fmt"
	"regexp"
	"strings"
)

// fnmatch compiles a pattern with the meaning of Python's fnmatch.fnmatchcase,
// which the Hub's own CLI uses: * crosses slashes, and there are no escapes. As
// in that CLI, a pattern that ends in a slash means all that lies below it.
func fnmatch(pattern string) (*regexp.Regexp, error) {
	pattern = strings.ReplaceAll(pattern, `\`, "/")
	if strings.HasSuffix(pattern, "/") {
		pattern += "*"
	}
	var expression strings.Builder
	expression.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*':
			expression.WriteString(`.*`)
		case '?':
			expression.WriteString(`.`)
		case '[':
			class, length := bracket(pattern[i:])
			expression.WriteString(class)
			i += length - 1
		default:
			// Byte by byte would break a multi-byte character apart.
			end := i + 1
			for end < len(pattern) && !strings.ContainsRune("*?[", rune(pattern[end])) {
				end++
			}
			expression.WriteString(regexp.QuoteMeta(pattern[i:end]))
			i = end - 1
		}
	}
	expression.WriteString(`\z`)
	compiled, err := regexp.Compile(expression.String())
	if err != nil {
		return nil, fmt.Errorf("read pattern %q: %w", pattern, err)
	}
	return compiled, nil
}

// bracket translates the [seq] at the start of pattern and returns its length.
// A bracket that is never closed is an ordinary character. A ] that comes first
// belongs to the set.
func bracket(pattern string) (class string, length int) {
	body := pattern[1:]
	negated := strings.HasPrefix(body, "!")
	if negated {
		body = body[1:]
	}
	start := 0
	if strings.HasPrefix(body, "]") {
		start = 1
	}
	end := strings.Index(body[start:], "]")
	if end < 0 {
		return `\[`, 1
	}
	set := body[:start+end]
	length = len(pattern) - len(body) + len(set) + 1
	var expression strings.Builder
	expression.WriteByte('[')
	if negated {
		expression.WriteByte('^')
	}
	for _, r := range set {
		if r == '-' {
			expression.WriteRune(r)
			continue
		}
		expression.WriteString(regexp.QuoteMeta(string(r)))
	}
	expression.WriteByte(']')
	return expression.String(), length
}

// patterns is a list of compiled patterns.
type patterns []*regexp.Regexp

func compile(list []string) (patterns, error) {
	compiled := make(patterns, 0, len(list))
	for _, pattern := range list {
		expression, err := fnmatch(pattern)
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, expression)
	}
	return compiled, nil
}

func (p patterns) match(path string) bool {
	for _, expression := range p {
		if expression.MatchString(path) {
			return true
		}
	}
	return false
}
