package hpa

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// randomInput draws an input with everything known.
func randomInput(g *rand.Rand) Input {
	in := at(int32(g.IntN(12)))
	in.Min, in.Version = int32(g.IntN(3)), Version{1, 27 + g.IntN(12)}
	in.Max = in.Min + int32(g.IntN(15))
	in.Replicas.Status, in.Replicas.Ready = Exactly(int32(g.IntN(14))), Exactly(int32(g.IntN(12)))
	for range 1 + g.IntN(3) {
		metric := external(g.Int64N(60_000), []int64{750, 1000, 2000, 30_000}[g.IntN(4)])
		switch g.IntN(6) {
		case 0:
			metric = failing()
		case 1:
			metric.Target = Value
		}
		in.Metrics = append(in.Metrics, metric)
	}
	for range g.IntN(5) {
		in.History.Recommendations = append(in.History.Recommendations, Recommendation{start.Add(-time.Duration(g.IntN(400)) * time.Second), int32(g.IntN(12))})
	}
	if g.IntN(3) == 0 {
		return in
	}
	in.Behavior = seeds()
	in.Behavior.Down.Policies[0].Value = []int32{25, 100, 300}[g.IntN(3)]
	for range g.IntN(3) {
		in.Rescales.Up = append(in.Rescales.Up, Rescale{Time: start.Add(-time.Duration(g.IntN(90)) * time.Second), Delta: Exactly(int32(g.IntN(4)))})
		in.Rescales.Down = append(in.Rescales.Down, Rescale{Time: start.Add(-time.Duration(g.IntN(90)) * time.Second), Delta: Exactly(int32(g.IntN(4)))})
	}
	return in
}

// TestBoundsContainTheDecision: whatever input is hidden, the size decided with
// it lies in the bounds decided without it.
func TestBoundsContainTheDecision(t *testing.T) {
	hide := map[string]func(*Input){
		"history":  func(in *Input) { in.History = nil },
		"rescales": func(in *Input) { in.Rescales = nil },
		"deltas": func(in *Input) {
			blur := func(rescales []Rescale) (out []Rescale) {
				for _, r := range rescales {
					out = append(out, Rescale{Time: r.Time, Delta: Range{0, r.Delta.High + 3}})
				}
				return out
			}
			in.Rescales = &Rescales{Up: blur(in.Rescales.Up), Down: blur(in.Rescales.Down)}
		},
		"status": func(in *Input) { in.Replicas.Status = span(in.Replicas.Status.Low, in.Replicas.Spec) },
		"ready":  func(in *Input) { in.Replicas.Ready = Range{0, 20} },
		"totals": func(in *Input) {
			for i := range in.Metrics {
				// As the status shows it: an average, rounded up.
				if seen := &in.Metrics[i].Seen; seen.State == Seen && in.Metrics[i].Target == AverageValue && in.Replicas.Status.Low > 0 {
					average := int64(math.Ceil(float64(*seen.Total) / float64(in.Replicas.Status.Low)))
					*seen = Observation{State: Seen, Average: &average}
				}
			}
		},
	}
	for name, hide := range hide {
		t.Run(name, func(t *testing.T) {
			g := rand.New(rand.NewPCG(1, 2))
			for range 20_000 {
				in := randomInput(g)
				known := Decide(in)
				if !known.Desired.Exact() {
					t.Fatalf("everything is known and the size is %v: %+v", known.Desired, in)
				}
				blind := in
				blind.Metrics = append([]Metric{}, in.Metrics...)
				hide(&blind)
				if got := Decide(blind); !got.Desired.Contains(known.Desired.Low) {
					t.Fatalf("%v does not contain %v: %+v", got.Desired, known.Desired, in)
				}
			}
		})
	}
}

// TestDecisionStaysInRange: a size inside its range stays inside.
func TestDecisionStaysInRange(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		in := randomInput(g)
		if in.Replicas.Spec == 0 || in.Replicas.Spec < in.Min || in.Replicas.Spec > in.Max {
			continue
		}
		if got := Decide(in).Desired; got.Low < in.Min || got.High > in.Max {
			t.Fatalf("%v leaves %d to %d: %+v", got, in.Min, in.Max, in)
		}
	}
}

// TestEdgesAreEdges: one thousandth decides.
func TestEdgesAreEdges(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 6))
	for range 5_000 {
		in := randomInput(g)
		in.Metrics = in.Metrics[:1]
		metric := &in.Metrics[0]
		if metric.Seen.State != Seen {
			continue
		}
		edges := Decide(in).Proposals[0].Edges
		propose := func(total int64) int32 {
			metric.Seen.Total = &total
			return in.propose(*metric).Count.Low
		}
		spec := in.Replicas.Spec
		if edges.Add != nil && (propose(*edges.Add) <= spec || (metric.Target == AverageValue && *edges.Add > 0 && propose(*edges.Add-1) > spec)) {
			t.Fatalf("add at %d: %+v", *edges.Add, in)
		}
		if edges.Remove != nil && (propose(*edges.Remove) >= spec || (metric.Target == AverageValue && propose(*edges.Remove+1) < spec)) {
			t.Fatalf("remove at %d: %+v", *edges.Remove, in)
		}
	}
}

func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"spec":{"maxReplicas":3,"metrics":[{"type":"External","external":{"metric":{"name":"s0-prometheus"},"target":{"averageValue":"2"}}}]},"status":{"currentReplicas":1,"currentMetrics":[{"type":"External","external":{"metric":{"name":"s0-prometheus"},"current":{"averageValue":"3"}}}]}}`), []byte(`[]`), int32(1), int32(3))
	f.Add([]byte(`{"spec":{"behavior":{"scaleUp":{"policies":[{"type":"Percent","value":100,"periodSeconds":15}]}},"metrics":[{"type":"Resource"}]},"status":{"currentReplicas":2147483647,"conditions":[{"type":"AbleToScale","status":"True","reason":"SucceededRescale"}],"lastScaleTime":"2026-11-30T12:00:00Z"}}`), []byte(`[{}]`), int32(0), int32(2147483647))
	f.Add([]byte(`{"spec":{"minReplicas":-5,"metrics":[{"type":"Object","object":{"target":{"value":"-9223372036854775808m"}}}]},"status":{"currentReplicas":-1}}`), []byte(`null`), int32(-7), int32(2))
	f.Add([]byte(`{"spec":{"maxReplicas":9,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":50}}}]},"status":{"currentReplicas":2,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":90,"averageValue":"450m"}}}]}}`),
		[]byte(`[{"metadata":{"name":"a"},"spec":{"containers":[{"resources":{"requests":{"cpu":"500m"}}}]},"status":{"phase":"Running","startTime":"2026-11-30T11:59:00Z","conditions":[{"type":"Ready","status":"False"}]}},{"metadata":{"name":"b"},"status":{"phase":"Pending"}}]`), int32(2), int32(2))
	f.Fuzz(func(t *testing.T, data, list []byte, low, high int32) {
		var object autoscalingv2.HorizontalPodAutoscaler
		var pods []corev1.Pod
		if json.Unmarshal(data, &object) != nil || json.Unmarshal(list, &pods) != nil {
			return
		}
		in := FromObject(&object, Range{low, high}, Range{0, high}, Version{1, 37}, start)
		in.Pods = pods
		observed := ObservedIn(&object)
		in.Slack = time.Second
		in.Rescales = in.KnownRescales([]SizeEvent{{Time: start, Size: high, Count: 1}}, observed)
		_ = Compare(Decide(in), observed)
		for i := range in.Metrics {
			in.Metrics[i].Seen.Samples = map[string]Sample{}
			for _, pod := range pods {
				in.Metrics[i].Seen.Samples[pod.Name] = Sample{Milli: int64(low), Time: start}
			}
		}
		_ = Compare(Decide(in), observed)
	})
}
