package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// seedReport is the example that ships: the seed's published table.
func seedReport(t *testing.T) record.BenchReport {
	t.Helper()
	data, err := os.ReadFile("../../../manifests/examples/seed-benchreport.json")
	if err != nil {
		t.Fatal(err)
	}
	var report record.BenchReport
	if err := record.Decode(data, record.KindBenchReport, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// engine is a replica whose capacity is known: it runs up to Batch requests at
// once, one at a time takes Service seconds, and each further one in the batch
// slows all of them by Slow seconds. So X(N) = min(N,B)/(Service+Slow*(min(N,B)-1)).
type engine struct {
	Batch         float64
	Service, Slow float64
	Noise         float64
}

func (e engine) rate(n float64) float64 {
	running := min(n, e.Batch)
	return running / (e.Service + e.Slow*(running-1))
}

func (e engine) capacity() float64 { return e.rate(e.Batch) }

// measure is a report of the engine under closed loops.
func (e engine) measure(run string, loads []int, seconds float64, random *rand.Rand) record.BenchReport {
	report := record.BenchReport{TypeMeta: record.Meta(record.KindBenchReport), Run: run, Target: record.TargetFacts{Model: "m"}}
	for _, load := range loads {
		n := float64(load)
		x := e.rate(n) * (1 + e.Noise*random.NormFloat64())
		completed := int(math.Round(x * seconds))
		latency := n / x
		running, waiting := min(n, e.Batch), max(n-e.Batch, 0)
		report.Cases = append(report.Cases, record.CaseReport{
			Case:                  record.BenchCase{Name: fmt.Sprintf("c%d", load), PromptTokens: 1024, OutputTokens: 128, Concurrency: load},
			Window:                record.CaseWindow{Seconds: seconds, Steady: true},
			Counts:                record.CaseCounts{Started: completed, Succeeded: completed, Completed: completed},
			RequestsPerSecond:     x,
			OutputTokensPerSecond: x * 128,
			Latency:               record.CaseLatencies{E2E: latencies(latency, completed), TTFT: latencies(.1+waiting/x, completed)},
			Server: map[string]*record.ServerSeries{
				record.SignalWaiting:      series(waiting),
				record.SignalRunning:      series(running),
				record.SignalKVCacheUsage: series(running / e.Batch * .9),
				record.SignalReplicas:     series(1),
				record.SignalPreemptions:  {Samples: 30, Increase: ptr(0.0)},
			},
			Validity: record.Validity{Valid: true},
		})
	}
	return report
}

// latencies is a summary with a tail of a fifth above its median.
func latencies(median float64, n int) record.LatencySummary {
	return record.LatencySummary{
		Count: n, Mean: ptr(median), Min: ptr(.9 * median), Max: ptr(1.3 * median),
		P50: ptr(median), P90: ptr(1.1 * median), P95: ptr(1.15 * median), P99: ptr(1.2 * median),
	}
}

func series(value float64) *record.ServerSeries {
	return &record.ServerSeries{Samples: 30, Mean: ptr(value), Max: ptr(value), Min: ptr(value)}
}

func ptr[T any](v T) *T { return &v }

func fold(t *testing.T, options Options, reports ...record.BenchReport) record.CapacityEnvelope {
	t.Helper()
	var sources []Source
	for _, report := range reports {
		sources = append(sources, Source{Name: report.Run + ".json", Report: report})
	}
	envelope, err := Envelope(sources, options)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func knee(t *testing.T, shape record.ShapeEnvelope, rule string) record.Knee {
	t.Helper()
	for _, one := range shape.Knees {
		if one.Rule == rule {
			return one
		}
	}
	t.Fatalf("no knee by %s", rule)
	return record.Knee{}
}

func thresholdOf(t *testing.T, shape record.ShapeEnvelope, trigger string) record.Threshold {
	t.Helper()
	for _, one := range shape.Thresholds {
		if one.Trigger == trigger {
			return one
		}
	}
	t.Fatalf("no threshold of %s", trigger)
	return record.Threshold{}
}
