package model_test

import (
	"math"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

// The published curve of the default engine at 1024 prompt and 128 output tokens, as mean end-to-end latency: the
// concurrency divided by the published throughput.
func TestDefaultReproducesThePublishedCurve(t *testing.T) {
	for concurrency, seconds := range map[int]float64{1: 3.1, 5: 5.1, 10: 7.6, 20: 13, 40: 24.5} {
		got := model.Default().ClosedLoop(concurrency, model.Shape{Input: 1024, Output: 128})
		if !near(got.Latency.Seconds(), seconds, 0.06) {
			t.Errorf("latency at concurrency %d = %.2f s, published %.1f s", concurrency, got.Latency.Seconds(), seconds)
		}
		res, err := model.Simulate(model.Default(), concurrency, model.Shape{Input: 1024, Output: 128}, 2*concurrency, 10*concurrency)
		if err != nil {
			t.Fatal(err)
		}
		if !near(res.Throughput, float64(concurrency)/seconds, 0.06) {
			t.Errorf("simulated throughput at concurrency %d = %.3f/s, published %.3f/s", concurrency, res.Throughput, float64(concurrency)/seconds)
		}
		if concurrency == 40 && !near(res.Averages.KVUse, 0.78, 0.01) {
			t.Errorf("kv use at concurrency 40 = %.3f, published 0.78", res.Averages.KVUse)
		}
		if res.Totals.Preemptions != 0 {
			t.Errorf("%d preemptions at concurrency %d, published none", res.Totals.Preemptions, concurrency)
		}
	}
}

// The closed form and the simulation were written apart: they must give the same capacity.
func TestClosedFormAgreesWithSimulation(t *testing.T) {
	small := model.Default()
	small.MaxNumSeqs = 8
	narrow := model.Default()
	narrow.MaxNumBatchedTokens = 512
	for name, test := range map[string]struct {
		config      model.Config
		concurrency int
		shape       model.Shape
		tolerance   float64
	}{
		"one client":              {model.Default(), 1, model.Shape{Input: 1024, Output: 128}, 0.005},
		"below the limit":         {model.Default(), 20, model.Shape{Input: 1024, Output: 128}, 0.01},
		"at the limit":            {model.Default(), 40, model.Shape{Input: 1024, Output: 128}, 0.01},
		"over the limit":          {model.Default(), 60, model.Shape{Input: 1024, Output: 128}, 0.01},
		"few sequences":           {small, 20, model.Shape{Input: 1024, Output: 128}, 0.01},
		"long output":             {model.Default(), 20, model.Shape{Input: 1024, Output: 1024}, 0.01},
		"short prompt":            {model.Default(), 40, model.Shape{Input: 16, Output: 256}, 0.01},
		"one output token":        {model.Default(), 8, model.Shape{Input: 512, Output: 1}, 0.02},
		"chunked prefill":         {model.Default(), 2, model.Shape{Input: 8192, Output: 128}, 0.02},
		"bound by token budget":   {narrow, 40, model.Shape{Input: 2048, Output: 32}, 0.05},
		"memory, an upper bound":  {model.Default(), 40, model.Shape{Input: 4096, Output: 128}, 0.10},
		"memory, longest prompts": {model.Default(), 10, model.Shape{Input: 14000, Output: 128}, 0.15},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.config.ClosedLoop(test.concurrency, test.shape)
			res, err := model.Simulate(test.config, test.concurrency, test.shape, 3*test.concurrency, 20*test.concurrency)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("closed form %.4f/s, simulated %.4f/s, %d preemptions", want.Throughput, res.Throughput, res.Totals.Preemptions)
			if !near(res.Throughput, want.Throughput, test.tolerance) {
				t.Errorf("simulated %.4f/s, closed form %.4f/s", res.Throughput, want.Throughput)
			}
		})
	}
}

func TestSaturation(t *testing.T) {
	for name, test := range map[string]struct {
		seqs  int
		shape model.Shape
		want  float64
	}{
		"sequence limit binds": {8, model.Shape{Input: 1024, Output: 128}, 8},
		"memory binds":         {40, model.Shape{Input: 14000, Output: 1}, 3513.0 / 875},
	} {
		t.Run(name, func(t *testing.T) {
			c := model.Default()
			c.MaxNumSeqs = test.seqs
			if got := c.SaturationBatch(test.shape); !near(got, test.want, 1e-9) {
				t.Errorf("saturation batch = %v, want %v", got, test.want)
			}
			at, over := c.MaxThroughput(test.shape), c.ClosedLoop(1000, test.shape)
			if !near(at, over.Throughput, 0.001) {
				t.Errorf("throughput still rises past saturation: %v to %v", at, over.Throughput)
			}
			if want := time.Duration(1000 / at * float64(time.Second)); !near(over.Latency.Seconds(), want.Seconds(), 0.001) {
				t.Errorf("latency past saturation = %v, want %v", over.Latency, want)
			}
		})
	}
}

func TestMaxConcurrency(t *testing.T) {
	shape := model.Shape{Input: 1024, Output: 128}
	for limit, want := range map[time.Duration]int{
		3 * time.Second: 0,
		model.Default().ClosedLoop(1, shape).Latency:      1,
		model.Default().ClosedLoop(20, shape).Latency:     20,
		model.Default().ClosedLoop(21, shape).Latency - 1: 20,
		model.Default().ClosedLoop(60, shape).Latency:     60, // queueing
	} {
		if got := model.Default().MaxConcurrency(shape, limit); got != want {
			t.Errorf("within %v: %d clients, want %d", limit, got, want)
		}
	}
}

func TestLittlesLaw(t *testing.T) {
	for _, n := range []int{1, 7, 40, 64} {
		res, err := model.Simulate(model.Default(), n, model.Shape{Input: 700, Output: 90}, 4*n, 30*n)
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for _, r := range res.Records {
			sum += r.E2E()
		}
		mean := sum.Seconds() / float64(len(res.Records))
		if l := res.Throughput * mean; !near(l, float64(n), 0.02) {
			t.Errorf("throughput x latency = %.2f at %d clients", l, n)
		}
		if inside := res.Averages.Running + res.Averages.Waiting; !near(inside, float64(n), 0.02) {
			t.Errorf("mean number in system = %.2f at %d clients", inside, n)
		}
	}
}
