package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Polling starts quickly, since most servers are ready in a moment, and slows
// down so as not to take the processor from the one that is awaited.
const (
	firstInterval = 20 * time.Millisecond
	lastInterval  = 300 * time.Millisecond
	probeTimeout  = time.Second
)

// Poll calls ready until it returns nil. When ctx ends first, the error is the
// last one of ready.
func Poll(ctx context.Context, ready func(context.Context) error) error {
	interval := firstInterval
	var last error
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		// An answer cut off by the deadline says less than the one before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("not ready in time: %w", last), context.Cause(ctx))
		case <-time.After(interval):
		}
		interval = min(interval*3/2, lastInterval)
	}
}

// HTTP is a probe that wants status 200 from url. With https, tlsConfig says
// whom to trust.
func HTTP(url string, tlsConfig *tls.Config) func(context.Context) error {
	client := &http.Client{
		Timeout: probeTimeout,
		// No connection is kept: one made before the network's rules were
		// complete would hide that new ones work, or do not.
		Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true},
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("probe %s: %w", url, err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 512))
		if err != nil {
			return fmt.Errorf("probe %s: %w", url, err)
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("probe %s: status %d: %s", url, resp.StatusCode, body)
		}
		return nil
	}
}
