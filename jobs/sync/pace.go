package sync

import "time"

const (
	// paceWindow is the time that a rate is of: what a transfer did before says
	// little of what it does now.
	paceWindow = 30 * time.Second
	// A rate foretells an end when it is of this time and of this many bytes, or
	// of a whole window. At its start a sync brings many small files, and the
	// rate of those would foretell hours.
	paceLeast      = 5 * time.Second
	paceLeastBytes = 32 << 20
)

// pace is the rate of the last moments. The zero value has none.
type pace struct{ samples []sample }

type sample struct {
	at    time.Time
	bytes float64
}

// add notes how much was brought until a moment.
func (p *pace) add(at time.Time, bytes float64) {
	p.samples = append(p.samples, sample{at, bytes})
	// The newest sample that is a window old is where the window begins.
	for len(p.samples) > 2 && at.Sub(p.samples[1].at) >= paceWindow {
		p.samples = p.samples[1:]
	}
}

// rate is in bytes per second; foretells says whether it is fit for an estimate
// of the time left.
func (p *pace) rate() (rate float64, foretells bool) {
	if len(p.samples) < 2 {
		return 0, false
	}
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	elapsed, bytes := last.at.Sub(first.at), last.bytes-first.bytes
	if elapsed <= 0 || bytes <= 0 {
		return 0, false
	}
	return bytes / elapsed.Seconds(), elapsed >= paceLeast && bytes >= paceLeastBytes || elapsed >= paceWindow
}
