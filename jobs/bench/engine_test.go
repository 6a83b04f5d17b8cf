package bench_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine/model"
)

// The engine fake is a queueing model whose capacity is known. Measured through
// a real HTTP server, with the profile 1024/128 at 1 to 40 slots, the client must
// find that capacity, and its latencies must be those that the engine counted.
func TestEngineTruth(t *testing.T) {
	var cases []record.BenchCase
	for _, n := range []int{1, 5, 10, 20, 40, 60} {
		cases = append(cases, record.BenchCase{Name: fmt.Sprintf("c%02d", n), PromptTokens: 1024, OutputTokens: 128, Concurrency: n})
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				fake, err := engine.New(engine.Config{Registry: registry})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = fake.Close() })
				p := plan(c)
				p.WarmupSeconds, p.DurationSeconds, p.RequestTimeoutSeconds = 120, 480, 380
				var ttft, e2e float64
				requests, tokens := 0, 0
				records, wait := recordsFunc(t, func(r record.RequestRecord) {
					requests++
					tokens += r.OutputTokens
					ttft += *r.TTFT
					e2e += *r.E2E
				})
				report, err := bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, fake), Records: records})
				wait()
				if err != nil {
					t.Fatal(err)
				}
				one := report.Cases[0]
				want := fake.Capacity(c.Concurrency, model.Shape{Input: 1024, Output: 128})
				near := func(name string, got, want, share float64) {
					t.Helper()
					if math.Abs(got-want) > share*want {
						t.Errorf("%s is %.4g, the engine's truth %.4g", name, got, want)
					}
				}
				near("throughput", one.RequestsPerSecond, want.Throughput, 0.03)
				near("output tokens", one.OutputTokensPerSecond, 128*want.Throughput, 0.03)
				near("latency", value(one.Latency.E2E.Mean), want.LatencySeconds, 0.03)
				near("in flight", value(one.Little.InFlight), float64(c.Concurrency), 0.001)
				near("Little's law", value(one.Little.Product), float64(c.Concurrency), 0.03)
				if !one.Validity.Valid || one.Counts.Failed != 0 || one.Counts.PromptMismatch != 0 {
					t.Errorf("validity %+v, counts %+v", one.Validity, one.Counts)
				}
				// The probe is a request more: one token of one block.
				near("requests", float64(requests+1), gathered(t, registry, "vllm:request_success_total"), 0)
				near("tokens", float64(tokens+1), gathered(t, registry, "vllm:generation_tokens_total"), 0)
				n := float64(requests)
				near("mean TTFT", ttft/n, (gathered(t, registry, "vllm:time_to_first_token_seconds")-*report.Target.ProbeSeconds)/n, 0.001)
				near("mean E2E", e2e/n, (gathered(t, registry, "vllm:e2e_request_latency_seconds")-*report.Target.ProbeSeconds)/n, 0.001)
			})
		})
	}
}

// A chat with a model that reasons first, with usage on every chunk: TTFOT is
// TTFT and the reasoning, ITL is known and, with one token a chunk, is ICL.
func TestEngineChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, err := engine.New(engine.Config{ReasoningTokens: 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = fake.Close() })
		p := plan(record.BenchCase{Name: "c2", PromptTokens: 256, OutputTokens: 64, Concurrency: 2})
		p.Target.API, p.ContinuousUsage, p.DurationSeconds = record.APIChat, true, 60
		report, err := bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, fake)})
		if err != nil {
			t.Fatal(err)
		}
		one := report.Cases[0]
		if !one.Validity.Valid || one.Counts.Completed < 20 {
			t.Errorf("validity %+v, counts %+v", one.Validity, one.Counts)
		}
		tpot := value(one.Latency.TPOT.Mean)
		if got, want := value(one.Latency.TTFOT.Mean)-value(one.Latency.TTFT.Mean), 20*tpot; math.Abs(got-want) > 0.1*want {
			t.Errorf("reasoning took %v, 20 tokens take %v", got, want)
		}
		if one.Latency.ITL.Count != one.Latency.ICL.Count || value(one.Latency.ITL.Mean) != value(one.Latency.ICL.Mean) {
			t.Errorf("ITL %d x %v, ICL %d x %v", one.Latency.ITL.Count, value(one.Latency.ITL.Mean), one.Latency.ICL.Count, value(one.Latency.ICL.Mean))
		}
	})
}

// gathered is a metric summed over its series: the value of a counter, the sum
// of a histogram.
func gathered(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
		}
	}
	return sum
}
