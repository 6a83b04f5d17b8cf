package runner

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// contactTime bounds the first look at a server.
const contactTime = 5 * time.Second

// contact looks whether anything listens where a run from here is to connect.
// At a terminal a port that refuses, or a name that does not exist, is most
// likely mistyped, and whoever waits there should not wait for all retries; in a
// Job the server may be about to start. Whatever else is wrong is found out by
// the requests themselves.
func contact(ctx context.Context, flag, endpoint string) error {
	address, err := url.Parse(endpoint)
	if endpoint == "" || err != nil {
		return nil
	}
	via := ""
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: address}); err == nil && proxy != nil {
		address, via = proxy, "the proxy on the way to "
	}
	port := address.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[address.Scheme]
	}
	if port == "" {
		// A proxy of another kind.
		return nil
	}
	dialer := net.Dialer{Timeout: contactTime}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address.Hostname(), port))
	if err == nil {
		return connection.Close()
	}
	var lookup *net.DNSError
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &lookup) && lookup.IsNotFound {
		return failure.New(failure.Unreachable, "check "+flag+", DNS, and HTTPS_PROXY and NO_PROXY; is the server running?", "reach %s%s: %w", via, endpoint, err)
	}
	return nil
}

// serial lets one event pass at a time.
func serial(emit func(record.Event)) func(record.Event) {
	var mu sync.Mutex
	return func(event record.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(event)
	}
}
