package bench

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func endingOf(t *testing.T, args ...string) (ending, error) {
	t.Helper()
	var e ending
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	e.addFlags(flags)
	for _, name := range []string{"concurrency", "requests", "rate", "arrival", "burstiness", "stages", "trace", "duration"} {
		flags.String(name, "", "")
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := e.validate(flags); err != nil {
		return e, err
	}
	plan := record.BenchPlan{Cases: []record.BenchCase{{Name: "a", PromptTokens: 1, OutputTokens: 1, Concurrency: 1}}}
	return e, e.apply(&plan, false)
}

func TestEndingRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"no repeats":           {"--repeats", "0"},
		"shuffled saturation":  {"--repeats", "2", "--stop-when-saturated"},
		"budget of no search":  {"--budget", "5m"},
		"a rate to search for": {"--find-knee", "--rate", "5"},
		"no share":             {"--stop-when-ci", "tight"},
		"share above all":      {"--min-goodput", "101%"},
		"share of nothing":     {"--find-knee", "--precision", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := endingOf(t, args...); failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, args := range map[string][]string{"defaults": nil, "all": {"--repeats", "3", "--stop-when-ci", "5%", "--min-goodput", "0.99"}, "search": {"--find-knee", "--budget", "5m"}} {
		if _, err := endingOf(t, args...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Rounds hold every case once, in an order that the seed decides.
func TestRepeated(t *testing.T) {
	cases := []record.BenchCase{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	all := repeated(cases, 3, 1)
	var orders [3]string
	for i, one := range all {
		orders[i/5] += one.Name[:1]
	}
	for i, order := range orders {
		letters := []byte(order)
		slices.Sort(letters)
		if string(letters) != "abcde" {
			t.Errorf("round %d: %s", i+1, order)
		}
	}
	if orders[0] == orders[1] && orders[1] == orders[2] || all[5].Repeat != 2 || all[14].Repeat != 3 {
		t.Errorf("orders %v", orders)
	}
	if !slices.Equal(names(all), names(repeated(cases, 3, 1))) || slices.Equal(names(all), names(repeated(cases, 3, 2))) {
		t.Error("the seed does not decide the order")
	}
}

func names(cases []record.BenchCase) []string {
	var all []string
	for _, one := range cases {
		all = append(all, one.Name)
	}
	return all
}
