package sync

import "context"

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
