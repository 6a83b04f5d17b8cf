package capacity

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func TestSaturation(t *testing.T) {
	top := func(r *record.BenchReport) *record.CaseReport { return &r.Cases[len(r.Cases)-1] }
	cases := map[string]struct {
		change func(*record.BenchReport)
		// want are the outcomes of the tests at the highest load, c=32 on a batch
		// of 16, by name; the others must have passed or not be looked at here.
		want      map[string]string
		sustained float64
	}{
		"a standing queue": {
			func(*record.BenchReport) {},
			map[string]string{testQueue: record.TestFailed, testThroughput: record.TestPassed, testErrors: record.TestPassed, testDrift: record.TestUnknown}, 16,
		},
		"a queue that empties": {
			func(r *record.BenchReport) { *top(r).Server[record.SignalWaiting].Min = 0 },
			map[string]string{testQueue: record.TestPassed}, 16, // the rate is the same, the lower load wins
		},
		"too few samples of the queue": {
			func(r *record.BenchReport) { top(r).Server[record.SignalWaiting].Samples = 4 },
			map[string]string{testQueue: record.TestUnknown}, 16,
		},
		"the seed's way: no minimum": {
			func(r *record.BenchReport) { top(r).Server[record.SignalWaiting].Min = nil },
			map[string]string{testQueue: record.TestUnknown}, 16,
		},
		"throughput falls": {
			func(r *record.BenchReport) { r.Cases[4].RequestsPerSecond = 4 },
			map[string]string{testQueue: record.TestFailed}, 8,
		},
		"falls within its interval": {
			func(r *record.BenchReport) {
				r.Cases[4].RequestsPerSecond = .94 * r.Cases[3].RequestsPerSecond
				r.Cases[4].RequestsPerSecondLow, r.Cases[4].RequestsPerSecondHigh = ptr(5.0), ptr(8.0)
			},
			map[string]string{}, 8,
		},
		"preemptions": {
			func(r *record.BenchReport) { r.Cases[3].Server[record.SignalPreemptions].Increase = ptr(1e4) },
			map[string]string{testPreemptions: record.TestPassed}, 4,
		},
		"a few preemptions": {
			func(r *record.BenchReport) { r.Cases[3].Server[record.SignalPreemptions].Increase = ptr(3.0) },
			map[string]string{}, 16,
		},
		"errors": {
			func(r *record.BenchReport) { r.Cases[2].Counts.Failed = r.Cases[2].Counts.Started / 50 },
			map[string]string{}, 2,
		},
		"counts unknown": {
			func(r *record.BenchReport) { each(r, func(c *record.CaseReport) { c.Counts.Started = 0 }) },
			map[string]string{testErrors: record.TestUnknown}, 16,
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			report := engine{Batch: 16, Service: 1, Slow: .03}.measure("r", []int{1, 2, 4, 8, 16, 32}, 900, rand.New(rand.NewPCG(1, 1)))
			test.change(&report)
			shape := fold(t, DefaultOptions(), report).Shapes[0]
			got := map[string]string{}
			for _, one := range shape.Levels[len(shape.Levels)-1].Saturation.Tests {
				if _, asked := test.want[one.Name]; asked {
					got[one.Name] = one.Result
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("tests at the highest load (-want +got):\n%s", diff)
			}
			if at := shape.Capacity.XSustain.Concurrency; at == nil || *at != test.sustained {
				t.Errorf("sustained at %v, want %g", at, test.sustained)
			}
		})
	}
}

func TestNextLoads(t *testing.T) {
	measure := func(loads ...int) record.BenchReport {
		return engine{Batch: 16, Service: 1, Slow: .03}.measure("r", loads, 900, rand.New(rand.NewPCG(1, 1)))
	}
	cases := map[string]struct {
		report record.BenchReport
		slos   []record.BenchSLO
		want   []int
	}{
		"range ends while rising": {measure(1, 2, 4, 8), nil, []int{16, 6}},
		"saturation in a gap":     {measure(1, 4, 16, 64), nil, []int{32, 8}},
		"no single request":       {measure(4, 8, 14, 16, 18), nil, []int{11, 1}},
		"objective in a gap": {measure(1, 4, 8, 16, 18), []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 1.5}},
			[]int{11, 6}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			options := DefaultOptions()
			options.SLOs = test.slos
			var got []int
			for _, next := range fold(t, options, test.report).Shapes[0].NextLoads {
				got = append(got, next.Concurrency)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("next loads (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever a report holds, folding it ends in a document.
func TestEnvelopeOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	some := func(v float64) *float64 {
		if random.IntN(3) == 0 {
			return nil
		}
		return &v
	}
	options := DefaultOptions()
	options.Resamples = 10
	options.SLOs = []record.BenchSLO{{Metric: record.MetricE2E, Percentile: 99, MaxSeconds: 10}, {Metric: record.MetricTTFT, Percentile: 50, MaxSeconds: 1}}
	options.Checks = []Check{{record.TriggerKV, .5}}
	for range 2000 {
		report := record.BenchReport{Target: record.TargetFacts{Model: "m"}}
		options.Headroom = []float64{0, .1, .9}[random.IntN(3)]
		for range 1 + random.IntN(7) {
			n := 1 + random.IntN(40)
			one := engine{Batch: 1 + random.Float64()*20, Service: random.Float64()*20 + .01, Noise: .5}.
				measure("r", []int{n}, random.Float64()*1000, random).Cases[0]
			one.Latency.E2E.P99 = some(random.Float64() * 40)
			one.Latency.TTFT.P50 = some(random.Float64() * 2)
			for _, series := range one.Server {
				series.Mean, series.Min, series.Max = some(random.Float64()*5), some(random.Float64()*2), some(random.Float64()*9)
			}
			if random.IntN(2) == 0 {
				delete(one.Server, record.SignalReplicas)
			}
			report.Cases = append(report.Cases, one)
		}
		if _, err := record.Encode(fold(t, options, report)); err != nil {
			t.Fatal(err)
		}
	}
}
