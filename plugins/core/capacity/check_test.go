package capacity

import (
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		check   Check
		verdict string
		from    float64 // 0 is never
	}{
		// kubernetes' tolerance of 10 % is what keeps the seed's triggers silent.
		"at the target":         {Check{record.TriggerWaiting, 2}, "stays silent: 2 at c=40 is ratio 1.00, within the 10 % tolerance", 0},
		"within the tolerance":  {Check{record.TriggerKV, .75}, "stays silent: 0.78 at c=40 is ratio 1.04, within the 10 % tolerance", 0},
		"just above the edge":   {Check{record.TriggerKV, .7}, "acts from c=40 on", 40},
		"far below":             {Check{record.TriggerWaiting, 20}, "stays silent: 2 at c=40 is below it", 0},
		"early":                 {Check{record.TriggerWaiting, .2}, "acts from c=5 on", 5},
		"a percentile":          {Check{record.TriggerP99E2E, 30}, "acts from c=40 on", 40},
		"not measured":          {Check{record.TriggerRunning, 8}, "not known: the signal was not measured", 0},
		"not a trigger we know": {Check{"cpu", 80}, "not known: the signal was not measured", 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			options.Resamples = 2
			options.Checks = []Check{test.check}
			got := fold(t, options, seedReport(t)).Shapes[0].Checks[0]
			if got.Verdict != test.verdict {
				t.Errorf("verdict %q, want %q", got.Verdict, test.verdict)
			}
			from := 0.0
			if got.ActsFrom != nil {
				from = *got.ActsFrom
			}
			if from != test.from {
				t.Errorf("acts from %g, want %g", from, test.from)
			}
		})
	}
}
