package hpa

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// scene is a controller that syncs, a workload that follows, a load that moves,
// and scrapes of the statuses.
type scene struct {
	g            *rand.Rand
	in           Input
	now          time.Time
	size, status int32
	history      *History
	rescales     *Rescales
	load         float64
	// shown is the status that the next scrape finds.
	shown  Past
	past   []Past
	counts []Past
	scrape time.Duration
	next   time.Time
}

func newScene(g *rand.Rand, scrape time.Duration) *scene {
	s := &scene{g: g, now: start.Add(-time.Hour), size: 3, status: 3, load: 6000, scrape: scrape, rescales: &Rescales{}}
	s.in = at(3, external(0, 2000))
	s.in.Max = 20
	if g.IntN(3) > 0 {
		s.in.Behavior = seeds()
		s.in.Behavior.Up.Window = ptr(time.Duration(g.IntN(3)) * 30 * time.Second)
		s.in.Behavior.Down.Window = ptr(time.Duration(60+g.IntN(4)*60) * time.Second)
	}
	s.in.SpecSince = ptr(s.now.Add(-time.Hour))
	s.next = s.now.Add(time.Duration(g.Int64N(int64(scrape))))
	s.restart()
	return s
}

func (s *scene) restart() {
	s.in.MemorySince = ptr(s.now)
	s.history, s.rescales = &History{Recommendations: []Recommendation{{s.now, s.size}}}, &Rescales{}
}

// step carries out one sync and returns it, with everything known.
func (s *scene) step() Decision {
	s.load = max(0, s.load+s.g.NormFloat64()*3000)
	total := int64(s.load)
	in := s.in
	in.Now, in.History, in.Rescales = s.now, s.history, s.rescales
	in.Replicas = Replicas{Spec: s.size, Status: Exactly(s.status), Ready: Exactly(s.status)}
	in.Metrics = []Metric{external(total, 2000)}
	failed := s.g.IntN(12) == 0
	if failed {
		in.Metrics[0].Seen = Observation{State: Failed, Reason: "FailedGetExternalMetric"}
	}
	d := Decide(in)
	took := time.Duration(60+s.g.IntN(440)) * time.Millisecond
	visible := s.now.Add(took + time.Duration(s.g.IntN(50))*time.Millisecond)
	s.scrapeUntil(visible)
	seen := Observation{State: Seen, Average: d.Proposals[0].Shown.Average}
	if failed {
		seen = in.Metrics[0].Seen
	}
	s.shown = Past{Replicas: Replicas{Spec: s.size}, Seen: []Observation{seen}}
	s.history, s.rescales = Remember(d, d.Desired.Low)
	s.size = d.Desired.Low
	s.now = s.now.Add(took + DefaultSyncPeriod)
	// The workload follows within a sync or two.
	s.scrapeUntil(visible.Add(8 * time.Second))
	if s.g.IntN(3) > 0 {
		s.status = s.size
	}
	s.scrapeUntil(s.now)
	return d
}

func (s *scene) scrapeUntil(end time.Time) {
	for ; s.next.Before(end); s.next = s.next.Add(s.scrape) {
		s.counts = append(s.counts, Past{Time: s.next, Replicas: Replicas{Spec: s.size, Status: Exactly(s.status)}})
		if s.shown.Seen == nil {
			continue
		}
		one := s.shown
		one.Time = s.next
		sizes := []int32{one.Replicas.Spec}
		for _, count := range s.counts {
			if s.next.Sub(count.Time) <= DefaultSyncPeriod+s.scrape+3*time.Second {
				sizes = append(sizes, count.Replicas.Spec, count.Replicas.Status.Low)
			}
		}
		one.Replicas.Status = span(sizes...)
		s.past = append(s.past, one)
	}
}

// TestRecalledContainsTheMemory: whatever was scraped, what the controller
// remembers lies in the bounds made of it, and so does what it decides. How much
// that helps is printed.
func TestRecalledContainsTheMemory(t *testing.T) {
	for _, scrape := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second} {
		t.Run(scrape.String(), func(t *testing.T) {
			var states, before, after, both int
			for seed := range uint64(60) {
				g := rand.New(rand.NewPCG(seed, uint64(scrape)))
				s := newScene(g, scrape)
				leaseKnown := g.IntN(4) > 0
				for n := range 120 {
					if g.IntN(50) == 0 {
						s.restart()
					}
					scraped := len(s.past)
					d := s.step()
					if n < 30 || d.Stabilization == nil {
						continue
					}
					blind := d.Input
					// The status is read a while after the sync.
					late := time.Duration(g.IntN(15)) * time.Second
					blind.Now, blind.Slack, blind.History = d.Input.Now.Add(late), DefaultSyncPeriod+3*time.Second, nil
					if !leaseKnown {
						blind.MemorySince = nil
					}
					past := s.past[:scraped]
					for _, one := range s.past[scraped:] {
						if !one.Time.After(blind.Now) {
							past = append(past[:len(past):len(past)], one)
						}
					}
					states++
					if Decide(blind).Desired.Exact() {
						before++
					}
					blind.Recalled = blind.Recall(past, DefaultSyncPeriod)
					got := Decide(blind)
					if got.Desired.Exact() {
						after++
					}
					if r := blind.Recalled; r != nil && r.Highest.High < math.MaxInt32 {
						both++
					}
					for what, pair := range map[string][2]Range{
						"size": {got.Desired, d.Desired}, "stabilized": {got.Stabilization.Count, d.Stabilization.Count},
						"window up": {got.Stabilization.UpFloor, d.Stabilization.UpFloor}, "window down": {got.Stabilization.DownFloor, d.Stabilization.DownFloor},
					} {
						if !pair[0].Contains(pair[1].Low) {
							t.Fatalf("seed %d sync %d: %s %v does not contain %v\nrecalled %+v\ntruth %+v\nhistory %+v\npast %+v", seed, n, what, pair[0], pair[1], blind.Recalled, d, d.Input.History, past[max(0, len(past)-20):])
						}
					}
				}
			}
			t.Logf("scrapes every %v: of %d syncs the size is exact in %.1f %% without, %.1f %% with them; both sides are bounded in %.1f %%",
				scrape, states, share100(before, states), share100(after, states), share100(both, states))
			if after <= before || (scrape <= DefaultSyncPeriod) != (both > 0) {
				t.Errorf("it does not help: %d, then %d of %d exact, %d bounded on both sides", before, after, states, both)
			}
		})
	}
}

func share100(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

// TestRecallNeeds: what is missing opens the bounds that rest on it.
func TestRecallNeeds(t *testing.T) {
	var past []Past
	for ago := 600; ago >= 0; ago -= 15 {
		average := int64(2000)
		if ago == 60 {
			average = 5000
		}
		past = append(past, Past{
			Time: start.Add(-time.Duration(ago) * time.Second), Replicas: Replicas{Spec: 2, Status: Exactly(2)},
			Seen: []Observation{{State: Seen, Average: &average}},
		})
	}
	base := at(2, external(4000, 2000))
	base.History, base.SpecSince, base.MemorySince = nil, ptr(start.Add(-time.Hour)), ptr(start.Add(-time.Hour))
	tests := map[string]struct {
		change func(*Input) []Past
		want   string
	}{
		"everything":            {func(*Input) []Past { return past }, "5"},
		"a gap":                 {func(*Input) []Past { return append(append([]Past{}, past[:30]...), past[32:]...) }, "at least 5"},
		"no lease":              {func(in *Input) []Past { in.MemorySince = nil; return past }, "0 to 5"},
		"a new controller":      {func(in *Input) []Past { in.MemorySince = ptr(start.Add(-20 * time.Second)); return past }, "0 to 5"},
		"the spec was edited":   {func(in *Input) []Past { in.SpecSince = ptr(start.Add(-10 * time.Second)); return past }, "unknown"},
		"nobody knows the spec": {func(in *Input) []Past { in.SpecSince = nil; return past }, ""},
		"nothing scraped":       {func(*Input) []Past { return nil }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := base
			past := test.change(&in)
			got := ""
			if recalled := in.Recall(past, DefaultSyncPeriod); recalled != nil {
				got = fmt.Sprint(recalled.Highest)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
