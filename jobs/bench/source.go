package bench

import (
	"context"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// prepared is a unit of load that only needs to be sent: a request, or the
// requests of a session.
type prepared struct {
	id    workload.ID
	phase string
	turns []turn
}

// turn is one request.
type turn struct {
	body           []byte
	prompt, output int // tokens asked for
	think          time.Duration
}

func (p prepared) size() int {
	n := 0
	for _, turn := range p.turns {
		n += len(turn.body)
	}
	return n
}

// maxPrepared bounds the bytes of the requests that are made ahead.
const maxPrepared = 32 << 20

// maker makes the units of one set of a case.
type maker struct {
	run   *run
	index int
	c     record.BenchCase
	set   uint8
	phase string
	// offset is the number of units of the load that come before the set.
	offset uint64
}

func (m maker) prepare(place uint64) prepared {
	unit := prepared{id: workload.NewID(m.index, m.set, place), phase: m.phase}
	for _, one := range m.c.Mix().Turns(m.run.seed, m.index, m.set, place, m.offset+place) {
		request := m.run.request(one.Prompt, one.Output)
		request.Stream = m.run.plan.Streams(m.c)
		unit.turns = append(unit.turns, turn{
			body: request.Body(), prompt: one.Prompt.Len(), output: one.Output, think: duration(one.ThinkSeconds),
		})
	}
	return unit
}

// source makes the units of one set ahead of their use, in order of their ids,
// so that making them takes no time from what sends them.
func source(ctx context.Context, m maker, ahead int) <-chan prepared {
	first := m.prepare(0)
	queue := make(chan prepared, min(max(ahead, 1), max(maxPrepared/max(first.size(), 1), 1)))
	queue <- first
	place := uint64(1)
	for ; len(queue) < cap(queue); place++ {
		queue <- m.prepare(place)
	}
	go func() {
		for ; ; place++ {
			select {
			case queue <- m.prepare(place):
			case <-ctx.Done():
				return
			}
		}
	}()
	return queue
}
