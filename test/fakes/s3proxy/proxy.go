// Package s3proxy stands between a client and a real S3 server and lets some
// requests fail, as networks and busy stores do.
package s3proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// Rates are the probabilities of each fault, from 0 to 1.
type Rates struct {
	// Refuse answers 500, 503 SlowDown or 409 in place of the server.
	Refuse float64
	// Drop breaks the connection before the server hears of the request.
	Drop float64
	// Lose breaks the connection after the server has carried the request out.
	Lose float64
}

// Proxy is an http.Handler. SetRates may be called at any time.
type Proxy struct {
	forward *httputil.ReverseProxy

	mu     sync.Mutex
	random *rand.Rand
	rates  Rates
	faults int
}

// New forwards to the server at target, with faults drawn from seed.
func New(target *url.URL, seed uint64) *Proxy {
	proxy := &Proxy{random: rand.New(rand.NewPCG(seed, 1))}
	proxy.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// The signature is over the host that the client knows.
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return proxy
}

// SetRates changes how often requests fail.
func (p *Proxy) SetRates(rates Rates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates = rates
}

// Faults counts the requests that failed.
func (p *Proxy) Faults() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}

func (p *Proxy) draw() (fault string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.random.Float64()
	status = []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusConflict}[p.random.IntN(3)]
	for _, choice := range []struct {
		name string
		rate float64
	}{{"refuse", p.rates.Refuse}, {"drop", p.rates.Drop}, {"lose", p.rates.Lose}} {
		if at < choice.rate {
			p.faults++
			return choice.name, status
		}
		at -= choice.rate
	}
	return "", 0
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch fault, status := p.draw(); fault {
	case "refuse":
		code := map[int]string{500: "InternalError", 503: "SlowDown", 409: "OperationAborted"}[status]
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>Please try again.</Message></Error>", code)
		}
	case "drop":
		// The documented way to break off a response.
		panic(http.ErrAbortHandler)
	case "lose":
		p.forward.ServeHTTP(discard{header: make(http.Header)}, r)
		panic(http.ErrAbortHandler)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// discard is a response that nobody gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
