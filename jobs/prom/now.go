package prom

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Now reads the gauges that tell how busy the server is, for whoever watches.
// What is not there is not in the result.
func (c *Client) Now(ctx context.Context, selector string, at time.Time) (map[string]float64, error) {
	now := map[string]float64{}
	for _, one := range signals() {
		if one.name != record.SignalWaiting && one.name != record.SignalKVCacheUsage {
			continue
		}
		for _, metric := range one.metrics {
			found, err := c.Instant(ctx, fmt.Sprintf(one.gauge, metric+selector), at)
			if err != nil {
				return now, err
			}
			if len(found) > 0 && len(found[0].Samples) > 0 {
				now[one.name] = found[0].Samples[0].Value
				break
			}
		}
	}
	return now, nil
}
