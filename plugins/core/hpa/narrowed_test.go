package hpa

import "testing"

// TestNarrowed: within the tolerance the size asked for is the divisor of the
// average, so it bounds the total, of the other metrics too.
func TestNarrowed(t *testing.T) {
	averaged := func(average int64) Metric {
		metric := external(0, 5000)
		metric.Seen = Observation{State: Seen, Average: &average}
		return metric
	}
	second := averaged(2000)
	second.Name = "s1-prometheus"
	in := with(at(5, averaged(5000), second), func(in *Input) {
		in.Replicas.Status, in.History = Range{1, 12}, nil
	})
	observed := Observed{Synced: true, AbleTrue: true, ActiveTrue: true, Current: 5, Desired: 5,
		Able: string(ReadyForNewScale), Active: string(ValidMetricFound), ActiveMessage: "calculate a replica count from external metric s0-prometheus(nil)", Limited: string(DesiredWithinRange)}
	d := Decide(in)
	if p := d.Proposals[0]; *p.TotalHigh != 60_000 || p.Edges.Add != nil {
		t.Errorf("alone: %d %v", *p.TotalHigh, text(p.Edges.Add))
	}
	narrowed := d.Narrowed(Compare(d, observed))
	for i, want := range []int64{25_000, 10_000} {
		p := narrowed.Proposals[i]
		if *p.TotalHigh != want || *p.TotalLow != want-4 || p.Edges.Add == nil || *p.Edges.Add != 27_501 {
			t.Errorf("metric %d: %d to %d, adds at %v", i, *p.TotalLow, *p.TotalHigh, text(p.Edges.Add))
		}
	}
	if again := d.Narrowed(Compare(d, Observed{})); again.Input.Replicas.Status != (Range{1, 12}) {
		t.Errorf("nothing proves %v", again.Input.Replicas.Status)
	}
}
