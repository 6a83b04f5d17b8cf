package workload_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

func TestConstantTimes(t *testing.T) {
	tests := map[string]struct {
		arrival     workload.Arrival
		warmup, end float64
		want        []float64
	}{
		"steady":             {workload.Arrival{Process: workload.Constant, Rate: 2}, 0, 2, []float64{0, 0.5, 1, 1.5}},
		"with warm-up":       {workload.Arrival{Process: workload.Constant, Rate: 1}, 2, 4, []float64{0, 1, 2, 3}},
		"ramp from 0":        {workload.Arrival{Process: workload.Constant, Stages: []workload.Stage{{4, 0, 2}}}, 0, 4, []float64{0, 2, math.Sqrt(8), math.Sqrt(12)}},
		"down to 0":          {workload.Arrival{Process: workload.Constant, Stages: []workload.Stage{{4, 2, 0}}}, 0, 4, []float64{0, 4 - math.Sqrt(12), 4 - math.Sqrt(8), 2}},
		"a pause":            {workload.Arrival{Process: workload.Constant, Stages: []workload.Stage{{1, 2, 2}, {3, 0, 0}, {1, 2, 2}}}, 0, 5, []float64{0, 0.5, 4, 4.5}},
		"warm-up of a stage": {workload.Arrival{Process: workload.Constant, Stages: []workload.Stage{{1, 4, 4}}}, 0.5, 1.5, []float64{0, 0.25, 0.5, 0.75, 1, 1.25}},
		"cut by the end":     {workload.Arrival{Process: workload.Constant, Rate: 1}, 0, 2.5, []float64{0, 1, 2}},
		"a trace":            {workload.Arrival{Process: workload.Replay, Trace: &workload.Trace{AtSeconds: []float64{0, 1, 5}}}, 3, 4, []float64{0, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := slices.Collect(test.arrival.Times(1, test.warmup, test.end))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Times are in order, before the end, the same for the same seed, and not for
// another one; their number is near the expected one.
func TestTimesProperties(t *testing.T) {
	for _, process := range []string{workload.Constant, workload.Poisson, workload.Gamma} {
		arrival := workload.Arrival{Process: process, Stages: []workload.Stage{{30, 5, 40}, {30, 40, 40}, {20, 40, 0}}}
		if process == workload.Gamma {
			arrival.Burstiness = 0.3
		}
		if err := arrival.Validate(); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			got := slices.Collect(arrival.Times(seed, 10, 90))
			if !slices.IsSorted(got) || got[0] < 0 || got[len(got)-1] >= 90 {
				t.Fatalf("%s: out of order, or not in [0, 90)", process)
			}
			if !slices.Equal(got, slices.Collect(arrival.Times(seed, 10, 90))) {
				t.Fatalf("%s: two of one seed differ", process)
			}
			if process != workload.Constant && slices.Equal(got, slices.Collect(arrival.Times(seed+1, 10, 90))) {
				t.Fatalf("%s: seeds %d and %d agree", process, seed, seed+1)
			}
			want := 50 + arrival.Expected(80)
			// The variance of a renewal process' count is about the mean / k.
			if sd := math.Sqrt(want / 0.3); math.Abs(float64(len(got))-want) > 4*sd {
				t.Errorf("%s, seed %d: %d requests, expected %v", process, seed, len(got), want)
			}
		}
	}
	if n := (workload.Arrival{Stages: []workload.Stage{{10, 0, 4}, {5, 4, 4}}}).Expected(12.5); n != 30 {
		t.Errorf("expected %v of 30", n)
	}
}

func TestParseStages(t *testing.T) {
	got, err := workload.ParseStages("1:60s, 1-8:2m,0.5:1s")
	if diff := cmp.Diff([]workload.Stage{{60, 1, 1}, {120, 1, 8}, {1, 0.5, 0.5}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, text := range []string{"", "1", "1:", ":5s", "a:5s", "1-2-3:5s", "1:5s,,"} {
		if _, err := workload.ParseStages(text); failure.KindOf(err) != failure.Usage || failure.HintOf(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestArrivalRefuses(t *testing.T) {
	trace := &workload.Trace{AtSeconds: []float64{0}, PromptTokens: []int{1}, OutputTokens: []int{1}}
	for name, arrival := range map[string]workload.Arrival{
		"no process":         {Rate: 1},
		"no rate":            {Process: workload.Poisson},
		"rate not a number":  {Process: workload.Poisson, Rate: math.NaN()},
		"endless rate":       {Process: workload.Poisson, Rate: math.Inf(1)},
		"burstiness missing": {Process: workload.Gamma, Rate: 1},
		"burstiness unused":  {Process: workload.Constant, Rate: 1, Burstiness: 2},
		"rate and stages":    {Process: workload.Constant, Rate: 1, Stages: []workload.Stage{{1, 1, 1}}},
		"stage of no time":   {Process: workload.Constant, Stages: []workload.Stage{{0, 1, 1}}},
		"stage below 0":      {Process: workload.Constant, Stages: []workload.Stage{{1, 1, -1}}},
		"no trace":           {Process: workload.Replay},
		"trace with a rate":  {Process: workload.Replay, Rate: 1, Trace: trace},
		"trace, not replay":  {Process: workload.Poisson, Rate: 1, Trace: trace},
	} {
		if arrival.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
