package runner

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// CAEnv holds certificates in PEM that are trusted beside the public ones
// (huggingface_hub#2222).
const CAEnv = "INFERENCE_CA_PEM"

// trusting returns a transport that trusts the certificates in pem too, and nil,
// which stands for the default, where there are none.
func trusting(pem string) (http.RoundTripper, error) {
	if pem == "" {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM([]byte(pem)) {
		return nil, failure.New(failure.Usage, "give certificates in PEM", "read %s: no certificate is in it", CAEnv)
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{RootCAs: roots},
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		// Parallel ranges over one HTTP/2 connection share a single window.
		Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	return transport, nil
}
