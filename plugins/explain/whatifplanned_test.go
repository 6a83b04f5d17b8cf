package explain

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatIfWithoutHPA: a manifest, a paused object, and an object at zero have
// no HPA that decides; what KEDA would make of them does.
func TestWhatIfWithoutHPA(t *testing.T) {
	const plain = "testdata/whatif-manifest.yaml"
	tests := map[string]struct {
		file     string
		sets     []string
		proposes string
		next     string
		turn     string
		settles  string
		note     string
	}{
		"a manifest":                {plain, []string{"s0.value=9", "s1.value=0.4"}, "5", "4", "active: leaves the size to the HPA", "5 after 15s: 4, 5", "from 1 replica"},
		"at another size":           {plain, []string{"s0.value=9", "s1.value=0.4", "replicas=4"}, "5", "5", "active: leaves the size to the HPA", "5 at the next sync", "KEDA would make"},
		"a value is missing":        {plain, []string{"s0.value=9"}, "5", "4", "active: leaves the size to the HPA", "unknown", "set s1.value= too"},
		"with a behavior":           {plain, []string{"s0.value=9", "s1.value=0.4", "behavior.scaleUp.policies=1/60s"}, "5", "2", "active: leaves the size to the HPA", "", ""},
		"no value at all":           {plain, []string{"max=9"}, "?", "1-4", "unknown", "unknown", "set s0.value=, s1.value= too"},
		"from zero":                 {plain, []string{"replicas=0", "s0.value=9", "s1.value=0"}, "5", "none: an HPA does not leave 0", "active: 0 -> 1 within 30s", "5 after 15s: 1, 4, 5", ""},
		"exactly at the activation": {plain, []string{"replicas=2", "s0.value=3", "s1.value=0", "s0.activationThreshold=3", "cooldown=60"}, "2", "2", "inactive: 2 -> 0 after the cooldown of 60s", "0 after 1m", ""},
		"above the activation":      {plain, []string{"replicas=2", "s0.value=3.001", "s1.value=0", "s0.activationThreshold=3"}, "2", "2", "active: leaves the size to the HPA", "2", ""},
		"an idle count":             {plain, []string{"min=2", "idle=1", "replicas=2", "s0.value=0", "s1.value=0"}, "0", "2", "inactive: 2 -> 1 after the cooldown of 300s", "1 after 5m", ""},
		"a faster loop":             {plain, []string{"replicas=0", "pollingInterval=5", "s0.value=9", "s1.value=0"}, "5", "none: an HPA does not leave 0", "active: 0 -> 1 within 5s", "5 after 15s: 1, 4, 5", ""},
		"paused":                    {"testdata/lab/paused.yaml", []string{"s0.value=9"}, "5", "4", "active: leaves the size to the HPA", "5 after 15s: 4, 5", "as if it were not"},
		"at zero in a cluster":      {"testdata/lab/zero.yaml", []string{"s0.value=9"}, "5", "none: an HPA does not leave 0", "active: 0 -> 1 within 5s", "4 at the sync after KEDA's turn: 1, 4", ""},
		"no effect":                 {"testdata/lab/steady.yaml", []string{"cooldown=30"}, "1", "1", "active: leaves the size to the HPA", "1", "cooldown=30 has no effect"},
		"no effect of the pace":     {"testdata/lab/steady.yaml", []string{"pollingInterval=2"}, "1", "1", "active: leaves the size to the HPA", "1", "at its own pace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			args := []string{"-f", test.file}
			for _, set := range test.sets {
				args = append(args, "--set", set)
			}
			chain := document(t, args...).Chains[0]
			what := chain.WhatIf
			if what == nil {
				t.Fatal("nothing")
			}
			if got := rangeText(what.Triggers[0].Proposes); got != test.proposes {
				t.Errorf("proposes %s", got)
			}
			if got := syncText(what.Decision, nil); got != test.next {
				t.Errorf("next sync %s", got)
			}
			if got := turnText(what.KEDA, what.Replicas); got != test.turn {
				t.Errorf("KEDA %s", got)
			}
			if got := settledText(what.Settles, what.KEDA); test.settles != "" && got != test.settles {
				t.Errorf("settles %s", got)
			}
			if !strings.Contains(strings.Join(what.Notes, "\n"), test.note) {
				t.Errorf("notes %q", what.Notes)
			}
		})
	}
}

// TestInverse feeds the values at which a trigger acts back through the model:
// at the value it acts, a thousandth (of a utilization: a percent) before it
// does not.
func TestInverse(t *testing.T) {
	checked := 0
	for _, file := range []string{"waiting", "cpu", "lab/steady", "lab/tolerance", "lab/limited-up", "lab/window-down", "lab/limited-down", "lab/composite", "lab/cooldown", "lab/fallback"} {
		path := "testdata/" + file + ".yaml"
		chain := document(t, "-f", path).Chains[0]
		size := chain.Decision.From
		proposes := func(trigger int, value float64) int32 {
			t.Helper()
			name := chain.Triggers[trigger].Metric
			what := document(t, "-f", path, "--set", fmt.Sprintf("%s.value=%.3f", name, value)).Chains[0].WhatIf
			got := what.Triggers[trigger].Proposes
			if n, known := exact(got); known {
				return n
			}
			t.Fatalf("%s %s at %g: got %s", file, name, value, rangeText(got))
			return 0
		}
		for i, trigger := range chain.Triggers {
			step := 0.001
			if trigger.TargetType == "Utilization" {
				step = 1
			}
			if trigger.AddsAt != nil {
				checked++
				if at, before := proposes(i, *trigger.AddsAt), proposes(i, *trigger.AddsAt-step); at <= size || before > size {
					t.Errorf("%s %s adds at %g: %d, before it %d, of %d", file, trigger.Label, *trigger.AddsAt, at, before, size)
				}
			}
			if trigger.RemovesAt != nil {
				checked++
				if at, above := proposes(i, *trigger.RemovesAt), proposes(i, *trigger.RemovesAt+step); at >= size || above < size {
					t.Errorf("%s %s removes at %g: %d, above it %d, of %d", file, trigger.Label, *trigger.RemovesAt, at, above, size)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d edges", checked)
	}
}
