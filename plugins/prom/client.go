package prom

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// client makes a client for one server, with what the trigger trusts and
// shows. Hosts of the cluster are reached by port-forward from outside, the
// endpoint of its tokens too.
func (r Reader) client(ctx context.Context, source Source) (client *http.Client, closeIdle func(), err error) {
	config, err := tlsOf(source)
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{Proxy: r.httpProxy, DialContext: r.dial, TLSClientConfig: config, ForceAttemptHTTP2: true}
	closeIdle = transport.CloseIdleConnections
	through := http.RoundTripper(transport)
	switch {
	case source.Auth.OAuth != nil:
		through = &oauth2.Transport{Source: source.Auth.OAuth.tokens(ctx, transport), Base: transport}
	case source.Auth.AWS != nil:
		if through, err = newSigning(ctx, transport, *source.Auth.AWS); err != nil {
			return nil, nil, err
		}
	}
	return &http.Client{Transport: through, CheckRedirect: stay}, closeIdle, nil
}

// stay follows no redirect: it would carry the credentials to another host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// tokens asks for a token as KEDA does: with the trust and the certificate of
// the trigger.
func (o OAuth) tokens(ctx context.Context, transport http.RoundTripper) oauth2.TokenSource {
	flow := clientcredentials.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, TokenURL: o.TokenURL,
		Scopes: o.Scopes, EndpointParams: o.Params,
	}
	if o.ClientSecret == "" {
		// The certificate is the secret (RFC 8705).
		flow.AuthStyle = oauth2.AuthStyleInParams
	}
	return flow.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport, CheckRedirect: stay}))
}

// forwards says whether an address is reached by port-forward.
func (r Reader) forwards(host string) (place, bool) {
	at, inside := placeOf(host, r.Home)
	return at, inside && r.Proxy != nil && r.Forward != nil
}

// httpProxy is the proxy of the environment, which the cluster's own hosts are
// not behind.
func (r Reader) httpProxy(request *http.Request) (*url.URL, error) {
	if _, inside := r.forwards(request.URL.Hostname()); inside {
		return nil, nil
	}
	return http.ProxyFromEnvironment(request)
}

func (r Reader) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	at, inside := r.forwards(host)
	if !inside {
		return dialer.DialContext(ctx, network, address)
	}
	connection, err := r.Forward(ctx, at.Namespace, at.Service, at.Pod, port)
	if err != nil && at.Unsure {
		if direct, wrong := dialer.DialContext(ctx, network, address); wrong == nil {
			return direct, nil
		}
	}
	return connection, err
}

func tlsOf(source Source) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: source.Insecure} //nolint:gosec // the trigger says so
	if source.Auth.CA != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM([]byte(source.Auth.CA)) {
			return nil, errors.New("its ca is no certificate")
		}
		config.RootCAs = pool
	}
	if source.Auth.Cert != "" && source.Auth.Key != "" {
		pair, err := tls.X509KeyPair([]byte(source.Auth.Cert), []byte(source.Auth.Key))
		if err != nil {
			return nil, errors.New("its cert and key are no pair")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// told puts the error of a client into words that hold no credential: an URL
// and the answer of a token endpoint may hold some.
func told(source Source, err error) error {
	var token *oauth2.RetrieveError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, errNoAWS):
		return errNoAWS
	case errors.As(err, &token):
		status := 0
		if token.Response != nil {
			status = token.Response.StatusCode
		}
		return fmt.Errorf("its oauthTokenURI gives no token: status %d", status)
	case errors.As(err, &unknown) && source.Auth.CA == "":
		return fmt.Errorf("the certificate of %s is not trusted here: KEDA may have authorities of its own (a ca parameter tells both)", source.Address.Host)
	}
	if asksForToken(err) {
		return fmt.Errorf("its oauthTokenURI does not answer: %w", withoutURL(err))
	}
	return fmt.Errorf("no answer from %s: %w", source.Address.Host, withoutURL(err))
}

// asksForToken says whether the request that failed was that for a token: all
// others are GETs.
func asksForToken(err error) bool {
	var address *url.Error
	for errors.As(err, &address) {
		if address.Op == "Post" {
			return true
		}
		err = address.Err
	}
	return false
}
