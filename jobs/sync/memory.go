package sync

import (
	"context"
	"math"
	"runtime/debug"
)

const (
	// besideBuffers is what a run may take beside its buffers: connections,
	// requests, and garbage until it is collected.
	besideBuffers = 20 << 20
	// besideFile is the same for each file of the plan: its lines in the
	// listing, the result and the manifest.
	besideFile = 4 << 10
)

// boundGarbage keeps the process near its budget, until the returned function
// is called. Without it the collector, which waits until memory has doubled,
// would count the buffers as a reason to leave as much garbage lying about. A
// limit that the user set (GOMEMLIMIT) stays.
func boundGarbage(budget int64, files int) (restore func()) {
	before := debug.SetMemoryLimit(-1)
	if before != math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(budget + besideBuffers + int64(files)*besideFile)
	return func() { debug.SetMemoryLimit(before) }
}

// memory is the budget of the whole run: a fixed number of buffers of one size,
// made when first needed and then used again, so that neither many files nor
// large ones need more.
type memory struct {
	unit int64
	free chan []byte
}

func newMemory(budget, unit int64) *memory {
	m := &memory{unit: unit, free: make(chan []byte, max(1, budget/unit))}
	for range cap(m.free) {
		m.free <- nil
	}
	return m
}

// take waits for a buffer and returns its first n bytes, n at most the unit.
func (m *memory) take(ctx context.Context, n int64) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case buffer := <-m.free:
		if buffer == nil {
			buffer = make([]byte, m.unit)
		}
		return buffer[:n], nil
	}
}

// give returns a buffer that take gave.
func (m *memory) give(buffer []byte) { m.free <- buffer[:cap(buffer)] }
