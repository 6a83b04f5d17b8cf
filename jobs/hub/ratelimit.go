package hub

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The Hub's names for the two kinds of request that it counts apart.
const (
	bucketAPI       = "api"
	bucketResolvers = "resolvers"
)

// pause is how long an answer of status 429 asks to wait: until the window
// ends and a second more, else Retry-After, else 0 for the caller's own back-off.
func pause(header http.Header, now time.Time) time.Duration {
	if _, left, seconds, ok := rateLimit(header); ok && left == 0 {
		return time.Duration(seconds+1) * time.Second
	}
	return retryAfter(header, now)
}

// rateLimit reads the header of the IETF draft draft-ietf-httpapi-ratelimit-
// headers-09: `"resolvers";r=12;t=55`, r requests left and t seconds until the
// window ends.
func rateLimit(header http.Header) (bucket string, left, seconds int, ok bool) {
	left, seconds = -1, -1
	for i, parameter := range strings.Split(header.Get("RateLimit"), ";") {
		if i == 0 {
			bucket = strings.Trim(strings.TrimSpace(parameter), `"`)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		number, err := strconv.Atoi(value)
		if err != nil || number < 0 {
			continue
		}
		switch name {
		case "r":
			left = number
		case "t":
			seconds = number
		}
	}
	return bucket, left, seconds, left >= 0 && seconds >= 0
}

// pace holds requests back once the Hub has said that their window is used up,
// so that parallel transfers do not each run into the same 429.
type pace struct {
	mu    sync.Mutex
	until map[string]time.Time
	// sum is the time waited, counted up to counted.
	sum     time.Duration
	counted time.Time
}

// note looks at an answer's RateLimit header.
func (p *pace) note(header http.Header, now time.Time) {
	bucket, left, seconds, ok := rateLimit(header)
	if !ok || left > 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = make(map[string]time.Time)
	}
	if until := now.Add(time.Duration(seconds+1) * time.Second); until.After(p.until[bucket]) {
		p.until[bucket] = until
	}
}

// waited adds a wait that starts now to the sum.
func (p *pace) waited(now time.Time, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, to := now, now.Add(wait)
	if p.counted.After(from) {
		from = p.counted
	}
	if to.After(from) {
		p.sum += to.Sub(from)
		p.counted = to
	}
}

func (p *pace) total() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}

// hold waits until the window of a bucket ends, if it is used up.
func (c *Client) hold(ctx context.Context, bucket string) error {
	now := c.options.Now()
	c.pace.mu.Lock()
	wait := c.pace.until[bucket].Sub(now)
	c.pace.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	c.pace.waited(now, wait)
	c.options.OnRetry(Retry{What: bucket, Wait: wait, RateLimited: true})
	return c.options.Wait(ctx, wait)
}
