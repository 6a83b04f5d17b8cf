package plan

import (
	"regexp"
	"slices"
	"strings"
)

// form is what a query does, without which pods it does it on: the functions
// from the outside in, and the engine series inside.
type form struct {
	// series are the engine series that are named, each once.
	series []string
	// calls lead from the outermost function to inner, the name that they end
	// in. inner is "" where the query is more than functions around one name.
	calls []call
	inner string
}

// call is one function or aggregation.
type call struct {
	name string
	// rank is the first argument of histogram_quantile.
	rank string
	// grouping is "by", "without" or "", labels what it lists.
	grouping string
	labels   []string
}

// plain says whether the query is nothing but functions around its series.
func (f form) plain() bool { return len(f.series) == 1 && f.inner == f.series[0] }

// path joins the names of the calls, as in "sum/avg_over_time".
func (f form) path() string {
	names := make([]string, len(f.calls))
	for i, call := range f.calls {
		names[i] = call.name
	}
	return strings.Join(names, "/")
}

// splits says whether the aggregation keeps the replicas apart.
func (c call) splits() bool {
	replica := func(label string) bool { return slices.Contains([]string{"pod", "instance", "engine"}, label) }
	return c.grouping == "without" || slices.ContainsFunc(c.labels, replica)
}

// parse reads a PromQL query. The grammar is the small part of PromQL that a
// threshold can be measured for; whatever else there is leaves inner empty.
func parse(query string) form {
	text := skeleton(query)
	parsed := form{series: seriesOf(text)}
	calls, inner := peel(withoutZero(text))
	if slices.Contains(parsed.series, inner) {
		parsed.calls, parsed.inner = calls, inner
	}
	return parsed
}

var (
	// Strings first: they may hold brackets and signs of comments.
	dropped = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`|#[^\n]*")
	// Selectors and ranges say which samples, not what is made of them.
	chosen = regexp.MustCompile(`\{[^{}]*\}|\[[^\[\]]*\]`)
	spaces = regexp.MustCompile(`\s+`)
	around = regexp.MustCompile(` ?([(),]) ?`)
)

// skeleton is the query without strings, comments, selectors and ranges.
func skeleton(query string) string {
	text := chosen.ReplaceAllString(dropped.ReplaceAllString(query, ""), "")
	return strings.TrimSpace(around.ReplaceAllString(spaces.ReplaceAllString(text, " "), "$1"))
}

var seriesPattern = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*:[a-zA-Z0-9_:]+`)

// seriesOf returns the engine series that a skeleton names, each once. Only
// they and recording rules have a colon in their names.
func seriesOf(skeleton string) []string {
	names := seriesPattern.FindAllString(skeleton, -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// withoutZero drops "or vector(0)": no sample is a zero to KEDA as well.
func withoutZero(text string) string {
	if rest, found := strings.CutSuffix(text, "or vector(0)"); found {
		return strings.TrimSpace(rest)
	}
	return text
}

var leadingName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)

// peel takes one call after the other off a skeleton and returns what is left:
// a name, or "" where it is none.
func peel(text string) (calls []call, inner string) {
	for {
		name := leadingName.FindString(text)
		rest := text[len(name):]
		if rest == "" {
			return calls, name
		}
		next := call{name: name}
		next.grouping, next.labels, rest = grouping(rest)
		argument, rest, ok := bracket(rest)
		if !ok {
			return nil, ""
		}
		if next.grouping == "" {
			next.grouping, next.labels, rest = grouping(rest)
		}
		if rest != "" {
			return nil, ""
		}
		if name == "histogram_quantile" {
			next.rank, argument, _ = strings.Cut(argument, ",")
		}
		// A bracket without a name groups only.
		if name != "" {
			calls = append(calls, next)
		}
		text = argument
	}
}

// grouping reads "by (...)" or "without (...)" at the start of text.
func grouping(text string) (kind string, labels []string, rest string) {
	trimmed := strings.TrimPrefix(text, " ")
	for _, kind := range []string{"by", "without"} {
		after, found := strings.CutPrefix(trimmed, kind)
		if !found {
			continue
		}
		if list, rest, ok := bracket(after); ok {
			return kind, strings.Split(list, ","), rest
		}
	}
	return "", nil, text
}

// bracket returns what is inside the round bracket that text starts with, and
// what follows it.
func bracket(text string) (inside, rest string, ok bool) {
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			if i == 0 {
				return "", text, false
			}
			return text[1:i], text[i+1:], true
		}
	}
	return "", text, false
}
