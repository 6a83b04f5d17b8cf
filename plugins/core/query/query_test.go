package query

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCount(t *testing.T) {
	for expr, want := range map[string]Series{
		`sum(vllm:num_requests_waiting)`: One,
		` ( sum ( rate(x[1m]) ) ) `:      One,
		`sum by () (x)`:                  One,
		`sum by (pod) (x)`:               Several,
		`sum(x) by (pod)`:                Several,
		`SUM(x) BY (pod)`:                Several,
		`sum without (pod) (x)`:          Several,
		`max(sum by (pod) (x))`:          One,
		`x`:                              Several,
		`x{pod=~"a)(.*"}`:                Several,
		`{__name__="x"}`:                 Several,
		`rate(x{a="b"}[5m])`:             Several,
		`rate(x[5m]) / 2`:                Several,
		`sum(x) / sum(y)`:                One,
		`sum(x) / scalar(count(y))`:      One,
		`sum(x) / on() group_left() y`:   One,
		`sum(x) or vector(0)`:            One,
		`sum(x) or y`:                    Several,
		`x and on(pod) y`:                Several,
		`histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m])))`:     One,
		`histogram_quantile(0.99, sum(rate(x_bucket[5m])) by (le))`:      One,
		`histogram_quantile(0.99, sum(rate(x[5m])))`:                     One,
		`histogram_quantile(0.9, sum by (le, pod) (rate(x_bucket[5m])))`: Several,
		`histogram_quantile(0.9, rate(x_bucket[5m]))`:                    Several,
		`clamp_min(sum(x), 1)`:                                           One,
		`ceil(x)`:                                                        Several,
		`topk(1, x)`:                                                     One,
		`topk(3, x)`:                                                     Several,
		`absent(x)`:                                                      One,
		`vector(1)`:                                                      One,
		`1 + 2`:                                                          Scalar,
		`1e-3`:                                                           Scalar,
		`-sum(x)`:                                                        One,
		`avg_over_time(sum(x)[5m:30s])`:                                  One,
		`label_replace(sum(x), "a", "b", "c", "d")`:                      One,
		`sum(x`:                Unknown,
		``:                     Unknown,
		`x y`:                  Unknown,
		`"text`:                Unknown,
		`count_values("v", x)`: Several,
	} {
		if got := Count(expr); got != want {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

func TestTraits(t *testing.T) {
	if got := Outer(`(avg (x))`); got != "avg" {
		t.Errorf("got %q", got)
	}
	if got := Outer(`avg(x) / 2`); got != "" {
		t.Errorf("got %q", got)
	}
	over, under, ok := Divided(`sum(rate(a[1m])) / scalar(count(up))`)
	if !ok || over != "sum(rate(a[1m]))" || !PerPod(under) {
		t.Errorf("got %q %q %t", over, under, ok)
	}
	if _, _, ok := Divided(`a * b`); ok {
		t.Error("a product is no quotient")
	}
	if PerPod("sum(b)") {
		t.Error("a sum counts no pods")
	}
	for expr, want := range map[string]time.Duration{
		`rate(x[5m])`: 5 * time.Minute, `max_over_time(sum(rate(x[30s]))[1h30m:15s])`: 90 * time.Minute, `x`: 0, `x{a="b"}`: 0,
	} {
		if got := Window(expr); got != want {
			t.Errorf("%s: got %s", expr, got)
		}
	}
	want := []string{`chat-predictor-.*`, `a\d+`}
	if diff := cmp.Diff(want, Patterns(`sum(x{pod=~"chat-predictor-.*"}) + sum(y{pod =~ "a\\d+", kpod="x"})`, "pod")); diff != "" {
		t.Error(diff)
	}
}

func TestBoundsOf(t *testing.T) {
	metric := func(name string) (Bounds, bool) { return Bounds{High: 1}, name == "usage" }
	for expr, want := range map[string]string{
		`avg(usage{a="b"})`:                 "0 1 false",
		`100 * avg(usage)`:                  "0 100 false",
		`(avg(usage)) * 100`:                "0 100 false",
		`avg(usage) / 0.01`:                 "0 100 false",
		`-2 * max(usage)`:                   "-2 0 false",
		`1 - avg(usage)`:                    "0 1 false",
		`100 * (1 - avg(usage))`:            "0 100 false",
		`100 * sum(usage)`:                  "0 100 true",
		`sum(100 * usage)`:                  "0 100 true",
		`sum(usage) or vector(0)`:           "0 1 true",
		`max_over_time(sum(usage)[5m:15s])`: "0 1 true",
		`sum(max_over_time(usage[5m]))`:     "0 1 true",
		`sum(sum by (pod) (usage))`:         "0 1 true",
		`avg(sum by (pod) (usage))`:         "",
		`1 - sum(usage)`:                    "",
		`avg(usage) * count(usage)`:         "",
		`avg(usage) * 100 - 5`:              "",
		`rate(usage[5m])`:                   "",
		`avg(other)`:                        "",
		`avg(usage:more)`:                   "",
		`histogram_quantile(0.9, usage)`:    "",
		`avg(usage) / 0`:                    "",
		`avg(usage) ^ 2`:                    "",
		`sum(usage) / count(usage)`:         "",
		`clamp_max(sum(usage), 1)`:          "",
	} {
		got := ""
		if b, ok := BoundsOf(expr, metric); ok {
			got = fmt.Sprint(b.Low, b.High, b.Summed)
			got = strings.ReplaceAll(got, "-0 ", "0 ")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}

func TestSelections(t *testing.T) {
	got := Selections(`sum(x{pod=~"d-.*",pod!~"d-canary-.*"}) + sum(y{pod=~"e-.*", pod != "e-1"}) + z{pod!="a"} + f("{pod=~\"g\"}")`, "pod")
	want := []Selection{{[]string{"d-.*"}, []string{"d-canary-.*"}}, {[]string{"e-.*"}, []string{"e-1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !got[0].Excludes("d-canary-1") || got[0].Excludes("d-1") {
		t.Error("excludes wrongly")
	}
}

func TestTimesPods(t *testing.T) {
	for expr, want := range map[string]bool{
		`histogram_quantile(0.9, x) * count(up)`: true, `scalar(count(up)) * avg(x)`: true, `avg(x) / count(up)`: false, `avg(x) * 100`: false, `avg(x)`: false,
	} {
		if got := TimesPods(expr); got != want {
			t.Errorf("%s: got %t", expr, got)
		}
	}
}

// FuzzCount: no text makes it panic or run for long.
func FuzzCount(f *testing.F) {
	for _, seed := range []string{`sum by (a) (x{b=~"c"}[5m])`, `((`, `a or b - -1e-3`, "`", `x[`, `by(`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		Count(expr)
		Outer(expr)
		Divided(expr)
		Window(expr)
		Patterns(expr, "pod")
		BoundsOf(expr, func(string) (Bounds, bool) { return Bounds{High: 1}, true })
	})
}
