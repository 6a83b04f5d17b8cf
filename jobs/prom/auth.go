package prom

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// queryTime bounds one query.
const queryTime = time.Minute

// NewHTTP makes a client that shows a server what auth says, whose variables are
// resolved. Redirects are not followed: they would carry the credentials to
// another host.
func NewHTTP(ctx context.Context, auth record.PrometheusAuth, insecure bool) (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure} //nolint:gosec // the trigger says so
	if auth.CA != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM([]byte(auth.CA)) {
			return nil, failure.New(failure.Usage, "", "read the credentials of Prometheus: its ca is no certificate")
		}
		trust.RootCAs = roots
	}
	if auth.Cert != "" && auth.Key != "" {
		pair, err := tls.X509KeyPair([]byte(auth.Cert), []byte(auth.Key))
		if err != nil {
			return nil, failure.New(failure.Usage, "", "read the credentials of Prometheus: its cert and key are no pair")
		}
		trust.Certificates = []tls.Certificate{pair}
	}
	var next http.RoundTripper = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
	if auth.AWS != nil {
		signed, err := newSigning(ctx, next, *auth.AWS)
		if err != nil {
			return nil, err
		}
		next = signed
	}
	return &http.Client{
		Transport: showing{next, auth}, Timeout: queryTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// showing adds the headers.
type showing struct {
	next http.RoundTripper
	auth record.PrometheusAuth
}

func (s showing) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for name, value := range s.auth.Headers {
		request.Header.Set(name, value)
	}
	switch {
	case s.auth.Bearer != "":
		request.Header.Set("Authorization", "Bearer "+s.auth.Bearer)
	case s.auth.Username != "":
		request.SetBasicAuth(s.auth.Username, s.auth.Password)
	}
	return s.next.RoundTrip(request)
}

// emptyBody is the SHA-256 of nothing: a query is a GET.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// signing signs each request for the service aps (SigV4).
type signing struct {
	next   http.RoundTripper
	region string
	keys   aws.CredentialsProvider
}

func newSigning(ctx context.Context, next http.RoundTripper, a record.PrometheusAWS) (http.RoundTripper, error) {
	if a.AccessKeyID != "" {
		return signing{next, a.Region, credentials.NewStaticCredentialsProvider(a.AccessKeyID, a.SecretAccessKey, a.SessionToken)}, nil
	}
	own, err := config.LoadDefaultConfig(ctx, config.WithRegion(a.Region))
	if err != nil {
		return nil, errNoAWS()
	}
	return signing{next, a.Region, own.Credentials}, nil
}

func errNoAWS() error {
	return failure.New(failure.Denied, "give the Job's ServiceAccount an AWS role that may query the workspace (IRSA or Pod Identity), with --service-account",
		"sign the query for Amazon Managed Prometheus: this pod has no AWS credentials")
}

func (s signing) RoundTrip(request *http.Request) (*http.Response, error) {
	keys, err := s.keys.Retrieve(request.Context())
	if err != nil {
		return nil, errNoAWS()
	}
	if err := v4.NewSigner().SignHTTP(request.Context(), keys, request, emptyBody, "aps", s.region, time.Now()); err != nil {
		return nil, failure.New(failure.Failed, "", "sign the query for AWS region %s", s.region)
	}
	return s.next.RoundTrip(request)
}
