package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/kubectl-inference/kubectl-inference/jobs/clock"
)

// DefaultEndpoint is the public Hub.
const DefaultEndpoint = "https://huggingface.co"

// Options configures a Client. The zero value reads the public Hub anonymously.
type Options struct {
	// Endpoint is the Hub's base URL; a path in it is kept.
	Endpoint string
	// Token is sent to exactly the endpoint's origin and nowhere else.
	Token string
	// Transport carries the requests; nil is a transport of its own.
	Transport http.RoundTripper
	// UserAgent names the program to the Hub.
	UserAgent string
	// Attempts is how often a request is tried before its error counts; 0 is
	// 8. An answer that names a rate limit is not an attempt.
	Attempts int
	// Stall is how long a response may send nothing; 0 is a minute.
	Stall time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Wait sleeps until d has passed or ctx ends; nil is a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// OnRetry hears of each retry and each wait for a rate limit.
	OnRetry func(Retry)
}

// Retry is a repeated request.
type Retry struct {
	// What names the request, such as a file's path.
	What string
	// Err is why, Wait how long the client waits before it asks again.
	Err  error
	Wait time.Duration
	// RateLimited is true where the Hub asked for the pause.
	RateLimited bool
}

// Client reads one Hub. It may be used by many goroutines.
type Client struct {
	options  Options
	endpoint *url.URL
	http     *http.Client
	pace     pace

	read, retries atomic.Int64
}

// New makes a Client; it asks nothing of the Hub yet.
func New(options Options) (*Client, error) {
	if options.Endpoint == "" {
		options.Endpoint = DefaultEndpoint
	}
	endpoint, err := url.Parse(strings.TrimRight(options.Endpoint, "/"))
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return nil, fmt.Errorf("open Hub: %q is not an http or https URL", options.Endpoint)
	}
	if options.Attempts == 0 {
		options.Attempts = 8
	}
	if options.Stall == 0 {
		options.Stall = time.Minute
	}
	if options.UserAgent == "" {
		options.UserAgent = "kubectl-inference"
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Wait == nil {
		options.Wait = clock.Sleep
	}
	if options.OnRetry == nil {
		options.OnRetry = func(Retry) {}
	}
	if options.Transport == nil {
		options.Transport = NewTransport()
	}
	return &Client{
		options:  options,
		endpoint: endpoint,
		// Redirects are followed by hand: which of them may see the token is
		// decided on the exact origin, where net/http would include subdomains.
		http: &http.Client{
			Transport:     options.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// NewTransport is a transport for few hosts and long bodies. It keeps HTTP/1.1:
// parallel ranges over one HTTP/2 connection share a single TCP window.
func NewTransport() *http.Transport {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		Protocols:             new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	return transport
}

// Endpoint is the base URL of the Hub.
func (c *Client) Endpoint() string { return c.endpoint.String() }

// Bytes is the number of body bytes read from file requests, repeats included.
func (c *Client) Bytes() int64 { return c.read.Load() }

// Retries is the number of repeated requests.
func (c *Client) Retries() int64 { return c.retries.Load() }

// Limited is the time during which requests waited for a rate limit. Requests
// that wait at the same time count once.
func (c *Client) Limited() time.Duration { return c.pace.total() }

// maxLimited is how many answers of status 429 in a row end a request: more
// than two hours of windows used up by others.
const maxLimited = 30

// retry calls attempt until it succeeds, its error is not worth another try, or
// the attempts are used up. progress, where not nil, says how far a transfer
// has come: an attempt that got further does not count as failed.
func (c *Client) retry(ctx context.Context, what string, progress func() int64, attempt func() error) error {
	policy := backoff.NewExponentialBackOff()
	policy.InitialInterval, policy.MaxInterval = 500*time.Millisecond, 30*time.Second
	var reached int64
	for failed, refused := 0, 0; ; {
		err := attempt()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		problem := classify(err)
		if problem.Class != Transient && problem.Class != Expired && problem.Class != RateLimited {
			return problem
		}
		if progress != nil && progress() > reached {
			reached = progress()
			failed, refused = 0, 0
			policy.Reset()
		}
		limited := problem.Class == RateLimited
		if limited {
			refused++
		} else {
			failed++
		}
		if failed >= c.options.Attempts || refused >= maxLimited {
			problem.Attempts = failed + refused
			return problem
		}
		wait := policy.NextBackOff()
		switch {
		case problem.Wait > 0:
			wait = problem.Wait
		case problem.Class == Expired && failed == 1:
			// A fresh URL is all that it takes.
			wait = 0
		}
		c.retries.Add(1)
		if limited {
			c.pace.waited(c.options.Now(), wait)
		}
		c.options.OnRetry(Retry{What: what, Err: problem, Wait: wait, RateLimited: limited})
		if wait > 0 {
			if err := c.options.Wait(ctx, wait); err != nil {
				return err
			}
		}
	}
}

// get sends one request with the Hub's headers, and with the token where the
// URL is of the endpoint's origin. It follows redirects within that origin and
// returns any other response, redirects to other hosts included.
func (c *Client) get(ctx context.Context, method string, address *url.URL, header http.Header) (*http.Response, error) {
	for range 6 {
		request, err := http.NewRequestWithContext(ctx, method, address.String(), nil)
		if err != nil {
			return nil, err
		}
		for key, values := range header {
			request.Header[key] = values
		}
		request.Header.Set("User-Agent", c.options.UserAgent)
		// Asked for by name, so that net/http does not ask for gzip: a packed
		// body has no length and no ranges (huggingface_hub#3778).
		request.Header.Set("Accept-Encoding", "identity")
		if c.options.Token != "" && sameOrigin(address, c.endpoint) {
			request.Header.Set("Authorization", "Bearer "+c.options.Token)
		}
		response, err := c.http.Do(request)
		if err != nil {
			return nil, err
		}
		if sameOrigin(address, c.endpoint) {
			c.pace.note(response.Header, c.options.Now())
		}
		next := redirect(response, address)
		if next == nil || !sameOrigin(next, address) {
			return response, nil
		}
		drain(response.Body)
		address = next
	}
	return nil, &Error{Class: Incompatible, Message: "the endpoint redirects in a circle", URL: plain(address)}
}

// redirect is the target of a redirecting response, or nil. A renamed
// repository's redirect loses the query on some endpoints, which would change
// the meaning of a listing (huggingface_hub#4637), so it is put back.
func redirect(response *http.Response, from *url.URL) *url.URL {
	switch response.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	next, err := from.Parse(response.Header.Get("Location"))
	if err != nil || response.Header.Get("Location") == "" {
		return nil
	}
	if next.RawQuery == "" && sameOrigin(next, from) {
		next.RawQuery = from.RawQuery
	}
	return next
}

// sameOrigin compares scheme, host and port, as RFC 6454 does.
func sameOrigin(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" {
			return p
		}
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// plain is a URL fit for a message: the query of a signed URL is a secret.
func plain(u *url.URL) string {
	copied := *u
	copied.RawQuery, copied.User = "", nil
	return copied.String()
}

// drain reads the little that is left of a body, so that the connection can be
// used again, and closes it.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
