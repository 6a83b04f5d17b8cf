package query

import "testing"

func TestBroken(t *testing.T) {
	for expr, want := range map[string]string{
		`sum(a{b="("}) / 2`:         "",
		`sum(rate(a[1m])) # (`:      "",
		"sum(a) # (\n + (":          "a ( is not closed",
		`sum(((`:                    "a ( is not closed",
		`sum(a[1m)`:                 "a ) closes nothing",
		`sum(a))`:                   "a ) closes nothing",
		`a{b="c}`:                   `a " has no end`,
		`sum by (le) (a{b=~"\")"})`: "",
	} {
		if got := Broken(expr); got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}
