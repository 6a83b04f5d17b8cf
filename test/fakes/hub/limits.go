package hub

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The Hub counts requests in buckets, each in fixed windows of its own.
const (
	bucketAPI       = "api"
	bucketResolvers = "resolvers"
)

// Limits are the requests allowed in a window; 0 is no limit.
type Limits struct {
	API, Resolvers int
	// Window is its length; 0 is the Hub's five minutes.
	Window time.Duration
}

type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	windows map[string]*window
}

type window struct {
	start time.Time
	used  int
}

// take counts one request. It returns what is left and the seconds until the
// window ends; ok is false where nothing was left.
func (l *limiter) take(bucket string) (quota, left, seconds int, ok bool) {
	quota = l.limits.API
	if bucket == bucketResolvers {
		quota = l.limits.Resolvers
	}
	if quota == 0 {
		return 0, 0, 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.windows == nil {
		l.windows = make(map[string]*window)
	}
	current := l.windows[bucket]
	if now := l.now(); current == nil || now.Sub(current.start) >= l.length() {
		current = &window{start: now}
		l.windows[bucket] = current
	}
	ok = current.used < quota
	if ok {
		current.used++
	}
	rest := l.length() - l.now().Sub(current.start)
	return quota, quota - current.used, int((rest + time.Second - 1) / time.Second), ok
}

func (l *limiter) length() time.Duration {
	if l.limits.Window == 0 {
		return 5 * time.Minute
	}
	return l.limits.Window
}

// limited counts a request in its bucket, with the headers of the IETF draft
// that the Hub sends on every answer, and carries out a FaultStatus.
func (h *Hub) limited(bucket string, next http.HandlerFunc) http.Handler {
	place := OnAPI
	if bucket == bucketResolvers {
		place = OnResolve
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.stats.add(func(s *Stats) {
			if place == OnAPI {
				s.APIRequests++
			} else {
				s.ResolveRequests++
			}
		})
		quota, left, seconds, ok := h.limiter.take(bucket)
		if quota > 0 {
			w.Header().Set("RateLimit", fmt.Sprintf("%q;r=%d;t=%d", bucket, left, seconds))
			w.Header().Set("RateLimit-Policy", fmt.Sprintf("\"fixed window\";%q;q=%d;w=%d", bucket, quota, int(h.limiter.length()/time.Second)))
		}
		if !ok {
			h.stats.add(func(s *Stats) { s.Limited++ })
			refuse(w, http.StatusTooManyRequests, "", "We had to rate limit your IP. To continue using our service, create a token.")
			return
		}
		if status, retryAfter, found := h.faults.status(place, r.URL.Path); found {
			if status == http.StatusTooManyRequests {
				h.stats.add(func(s *Stats) { s.Limited++ })
			}
			failWith(w, status, retryAfter)
			return
		}
		next(w, r)
	})
}
