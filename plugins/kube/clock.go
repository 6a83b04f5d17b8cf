package kube

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Clock compares the clock of this machine with the API server's, by the header
// Date of answers that are read anyway. What the objects say is in the cluster's
// time: with a wrong local clock their ages would be wrong.
type Clock struct {
	mutex sync.Mutex
	known bool
	// least and most bound the server's time less the local one.
	least, most time.Duration
}

// see takes an answer that was asked for and came at times of the local clock.
// The header has whole seconds.
func (c *Clock) see(date, asked, came time.Time) {
	least, most := date.Sub(came), date.Add(time.Second).Sub(asked)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.known && least <= c.most && most >= c.least {
		least, most = max(least, c.least), min(most, c.most)
	}
	// Where two answers exclude each other, their servers' clocks differ, or the
	// local one was set: the newer one counts.
	c.known, c.least, c.most = true, least, most
}

// Ahead is what to add to the local time to get the server's, and how far that
// may be off; both are 0 where the two clocks may well be the same.
func (c *Clock) Ahead() (ahead, unsure time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.known || (c.least <= 0 && c.most >= 0) {
		return 0, 0
	}
	return (c.least + c.most) / 2, (c.most - c.least) / 2
}

// watch looks at lists of HPAs only: answers to discovery may come from a
// cache, and those of a proxy or of an aggregated API have another server's
// time.
func (c *Clock) watch(next http.RoundTripper) http.RoundTripper {
	return dated{next, c}
}

type dated struct {
	http.RoundTripper
	clock *Clock
}

// RoundTrip sends the request.
func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := time.Now()
	response, err := d.RoundTripper.RoundTrip(request)
	if err != nil || !strings.HasPrefix(request.URL.Path, "/apis/autoscaling/") || !strings.HasSuffix(request.URL.Path, "/horizontalpodautoscalers") {
		return response, err
	}
	if date, parsed := http.ParseTime(response.Header.Get("Date")); parsed == nil {
		d.clock.see(date, asked, time.Now())
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport itself.
func (d dated) WrappedRoundTripper() http.RoundTripper { return d.RoundTripper }
