package openai

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Transport says how a server is reached.
type Transport struct {
	// HTTP is record.HTTP1 (the default), HTTP2 or HTTP2Clear. It is the only
	// version that is spoken: what was measured is what was asked for.
	HTTP string
	// Insecure accepts any certificate. CA are certificates (PEM) to trust
	// besides those of the system.
	Insecure bool
	CA       []string
}

// NewHTTP makes an http.Client for measuring over HTTP/1.1.
func NewHTTP(insecure bool) *http.Client {
	// Without certificates nothing can fail.
	client, _ := Transport{Insecure: insecure}.Client()
	return client
}

// Client makes an http.Client for measuring: one version of HTTP, as many
// connections as the requests in flight need and all of them kept, no
// compression, no redirects.
func (t Transport) Client() (*http.Client, error) {
	var protocols http.Protocols
	switch t.HTTP {
	case record.HTTP2:
		protocols.SetHTTP2(true)
	case record.HTTP2Clear:
		protocols.SetUnencryptedHTTP2(true)
	default:
		protocols.SetHTTP1(true)
	}
	settings := &tls.Config{InsecureSkipVerify: t.Insecure} //nolint:gosec // asked for with a flag
	for _, pem := range t.CA {
		if settings.RootCAs == nil {
			pool, err := x509.SystemCertPool()
			if err != nil {
				pool = x509.NewCertPool()
			}
			settings.RootCAs = pool
		}
		if !settings.RootCAs.AppendCertsFromPEM([]byte(pem)) {
			return nil, failure.New(failure.Usage, "it must hold certificates in PEM", "read CA certificates: there is none")
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			Protocols:           &protocols,
			MaxIdleConnsPerHost: 1 << 16,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
			DisableCompression:  true,
			TLSClientConfig:     settings,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
