package kube

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }
	type answer struct{ date, asked, came time.Time }
	tests := map[string]struct {
		answers       []answer
		ahead, unsure time.Duration
	}{
		"nothing read":                    {},
		"the same clock":                  {answers: []answer{{at(0), at(0.2), at(0.3)}}},
		"a slow answer proves nothing":    {answers: []answer{{at(3), at(0), at(9)}}},
		"an hour ahead":                   {[]answer{{at(3600), at(0), at(0.5)}}, 3600*time.Second + 250*time.Millisecond, 750 * time.Millisecond},
		"an hour behind":                  {[]answer{{at(-3600), at(0), at(0)}}, -3600*time.Second + 500*time.Millisecond, 500 * time.Millisecond},
		"two answers narrow it":           {[]answer{{at(10), at(0), at(0)}, {at(10), at(0.4), at(0.4)}}, 10*time.Second + 300*time.Millisecond, 300 * time.Millisecond},
		"the newer of two servers counts": {[]answer{{at(10), at(0), at(0)}, {at(20), at(0), at(0)}}, 20*time.Second + 500*time.Millisecond, 500 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var clock Clock
			for _, a := range test.answers {
				clock.see(a.date, a.asked, a.came)
			}
			if ahead, unsure := clock.Ahead(); ahead != test.ahead || unsure != test.unsure {
				t.Errorf("got %v, unsure by %v", ahead, unsure)
			}
		})
	}
}
