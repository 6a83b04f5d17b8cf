package runner

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/hub"
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
	transport := hub.NewTransport()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	return transport, nil
}
