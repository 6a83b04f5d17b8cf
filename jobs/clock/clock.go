// Package clock is waiting that ends with a context.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d; where ctx ends before, it returns why.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Every calls act once in each interval, one call at a time, until ctx ends or
// stop is called. When stop returns, no call is under way and none follows.
func Every(ctx context.Context, interval time.Duration, act func()) (stop func()) {
	watch, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-watch.Done():
				return
			case <-ticker.C:
				act()
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
