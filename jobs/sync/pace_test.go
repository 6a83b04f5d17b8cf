package sync

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const mib = 1 << 20
	type step struct{ second, mib float64 }
	for name, test := range map[string]struct {
		steps     []step
		rate      float64 // MiB/s
		foretells bool
	}{
		"nothing yet":               {nil, 0, false},
		"one look":                  {[]step{{0, 0}}, 0, false},
		"small files first":         {[]step{{0, 0}, {1, 0.1}, {6, 0.6}}, 0.1, false},
		"a moment of a large file":  {[]step{{0, 0}, {1, 100}}, 100, false},
		"some seconds of it":        {[]step{{0, 0}, {1, 100}, {5, 500}}, 100, true},
		"a slow line":               {[]step{{0, 0}, {10, 5}, {20, 10}, {30, 15}}, 0.5, true},
		"small files, then a large": {[]step{{0, 0}, {10, 1}, {20, 2}, {30, 3}, {40, 503}, {50, 1003}, {60, 1503}}, 50, true},
		"it stalls":                 {[]step{{0, 0}, {10, 900}, {20, 900}, {30, 900}, {41, 900}}, 0, false},
		"a file is read again":      {[]step{{0, 500}, {10, 100}}, 0, false},
	} {
		var p pace
		began := time.Unix(0, 0)
		for _, step := range test.steps {
			p.add(began.Add(time.Duration(step.second*float64(time.Second))), step.mib*mib)
		}
		rate, foretells := p.rate()
		if diff := rate/mib - test.rate; diff > 1e-6 || diff < -1e-6 || foretells != test.foretells {
			t.Errorf("%s: %.3f MiB/s, %v; want %.3f, %v", name, rate/mib, foretells, test.rate, test.foretells)
		}
	}
}
