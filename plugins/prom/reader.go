package prom

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// largestAnswer bounds the memory of one answer: one series is expected.
const largestAnswer = 4 << 20

// Reader asks the servers of triggers.
type Reader struct {
	// Proxy is a client of the API server and APIServer its base URL: services
	// of the cluster are reached through its proxy. Without it, all servers are
	// asked directly.
	Proxy     *http.Client
	APIServer string
	Timeout   time.Duration
}

// Read asks for the trigger's value at a moment, by the rules of KEDA's
// version. via says which way was taken: "proxy" or "direct".
func (r Reader) Read(ctx context.Context, source Source, version keda.Version, at time.Time) (value float64, via string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	client, base, via := r.way(source)
	if client == nil {
		if client, err = direct(source); err != nil {
			return 0, via, err
		}
		defer client.CloseIdleConnections()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source.target(base, at), nil)
	if err != nil {
		return 0, via, fmt.Errorf("its serverAddress is no URL")
	}
	for name, header := range source.Headers {
		request.Header.Set(name, header)
	}
	switch {
	case via == viaProxy:
	case source.Auth.Bearer != "":
		request.Header.Set("Authorization", "Bearer "+source.Auth.Bearer)
	case source.Auth.Username != "":
		request.SetBasicAuth(source.Auth.Username, source.Auth.Password)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, via, fmt.Errorf("no answer from %s: %w", source.Address.Host, withoutURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return 0, via, fmt.Errorf("no answer from %s: %w", source.Address.Host, withoutURL(err))
	}
	reading := keda.ReadPrometheus(version, response.StatusCode, body, source.EmptyIsZero)
	if reading.Failure != "" {
		return 0, via, errors.New(reasonOf(reading.Failure, response.StatusCode, source, via))
	}
	return reading.Value, via, nil
}

const (
	viaProxy  = "proxy"
	viaDirect = "direct"
)

// way chooses between the API server's proxy and a direct connection. The API
// server keeps an Authorization header and the certificates of a client to
// itself, so who needs those is asked directly.
func (r Reader) way(source Source) (client *http.Client, base, via string) {
	service, namespace, inside := serviceOf(source.Address)
	if r.Proxy == nil || !inside || source.Auth.authorizes() || source.Auth.Cert != "" {
		return nil, source.Address.String(), viaDirect
	}
	scheme, port := "", source.Address.Port()
	if source.Address.Scheme == "https" {
		scheme = "https:"
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[source.Address.Scheme]
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/services/%s%s:%s/proxy%s", namespace, scheme, service, port, source.Address.EscapedPath())
	return r.Proxy, strings.TrimSuffix(r.APIServer, "/") + path, viaProxy
}

// serviceOf reads NAME.NAMESPACE, NAME.NAMESPACE.svc and
// NAME.NAMESPACE.svc.DOMAIN; inside is false for any other host.
func serviceOf(address *url.URL) (service, namespace string, inside bool) {
	parts := strings.Split(strings.TrimSuffix(address.Hostname(), "."), ".")
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" || strings.Trim(address.Hostname(), "0123456789.") == "" {
		return "", "", false
	}
	if len(parts) > 2 && parts[2] != "svc" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// direct makes a client for one server with what the trigger trusts and shows.
func direct(source Source) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: source.Insecure} //nolint:gosec // the trigger says so
	if source.Auth.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(source.Auth.CA)) {
			return nil, errors.New("its ca is no certificate")
		}
	}
	if source.Auth.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(source.Auth.Cert), []byte(source.Auth.Key))
		if err != nil {
			return nil, errors.New("its cert and key are no pair")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config},
		// A redirect would carry the credentials to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// withoutURL drops the URL of a client's error: parameters may be credentials.
func withoutURL(err error) error {
	var address *url.Error
	if errors.As(err, &address) {
		return address.Err
	}
	return err
}

func reasonOf(failure keda.ReadingFailure, status int, source Source, via string) string {
	switch failure {
	case keda.QueryRefused:
		if via == viaProxy && (status == http.StatusForbidden || status == http.StatusNotFound) {
			service, namespace, _ := serviceOf(source.Address)
			return fmt.Sprintf("status %d for service %s in %s through the API server: `kubectl auth can-i get services --subresource=proxy -n %s`", status, service, namespace, namespace)
		}
		return fmt.Sprintf("%s answers with status %d", source.Address.Host, status)
	case keda.QueryEmpty:
		return "the result is empty, and ignoreNullValues is off"
	case keda.QuerySeveral:
		return "the result has more than one series: KEDA refuses it"
	case keda.QueryNoNumber:
		return "the value is no number, and ignoreNullValues is off"
	}
	return source.Address.Host + " does not answer as Prometheus does"
}
