package bench

import (
	"context"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// prepared is a request that only needs to be sent.
type prepared struct {
	id    workload.ID
	phase string
	body  []byte
}

// maxPrepared bounds the bytes of the requests that are made ahead.
const maxPrepared = 32 << 20

// source makes the requests of one set ahead of their use, in order of their
// ids, so that making them takes no time from the slot that sends them.
func source(ctx context.Context, caseIndex int, set uint8, phase string, ahead int, body func(workload.ID) []byte) <-chan prepared {
	make1 := func(place uint64) prepared {
		id := workload.NewID(caseIndex, set, place)
		return prepared{id: id, phase: phase, body: body(id)}
	}
	first := make1(0)
	queue := make(chan prepared, min(max(ahead, 1), max(maxPrepared/len(first.body), 1)))
	queue <- first
	place := uint64(1)
	for ; len(queue) < cap(queue); place++ {
		queue <- make1(place)
	}
	go func() {
		for ; ; place++ {
			select {
			case queue <- make1(place):
			case <-ctx.Done():
				return
			}
		}
	}()
	return queue
}
