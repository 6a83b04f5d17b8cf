package prom

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// prometheus answers 3.5 where allowed says so.
func prometheus(allowed func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, answer(`[{"metric":{},"value":[1,"3.5"]}]`))
	})
}

func ask(t *testing.T, address string, metadata map[string]string, given keda.Credentials, version keda.Version) (Result, error) {
	t.Helper()
	source, err := FromTrigger(trigger(address, metadata), given, version)
	if err != nil {
		return Result{}, err
	}
	return Reader{Timeout: time.Minute}.Read(t.Context(), source, version, moment)
}

func given(pairs ...string) keda.Credentials {
	parameters := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		parameters[pairs[i]] = pairs[i+1]
	}
	return keda.Credentials{Parameters: parameters}
}

// tokenEndpoint is that of the client credentials flow (RFC 6749 section 4.4).
func tokenEndpoint(t *testing.T, status int) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that was refused with a header tries again with parameters.
		id, password, basic := r.BasicAuth()
		if !basic {
			id, password = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		if r.Method != http.MethodPost || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "metrics read" || r.FormValue("audience") != "prometheus" ||
			id != "client" || password != secret {
			t.Errorf("token request %s %v", r.Method, r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status != http.StatusOK {
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"client_secret %s is wrong"}`, secret)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-%s","token_type":"Bearer","expires_in":60}`, secret)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestOAuth: KEDA sends a token since 2.21, and asks without one before.
func TestOAuth(t *testing.T) {
	server := httptest.NewServer(prometheus(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer token-"+secret }))
	defer server.Close()
	parameters := given("oauthTokenURI", tokenEndpoint(t, http.StatusOK).URL, "clientID", "client", "clientSecret", secret, "scope", "metrics, read", "endpointParams", "audience=prometheus")
	oauth := map[string]string{"authModes": "oauth"}
	if got, err := ask(t, server.URL, oauth, parameters, keda.Version{Major: 2, Minor: 21}); err != nil || got.Value != 3.5 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ask(t, server.URL, oauth, parameters, keda.Version{Major: 2, Minor: 20}); err == nil || !strings.Contains(err.Error(), "status 403 (KEDA 2.20.0 accepts authMode oauth here and sends no token") {
		t.Errorf("got %v", err)
	}
	parameters.Parameters["oauthTokenURI"] = tokenEndpoint(t, http.StatusUnauthorized).URL
	if _, err := ask(t, server.URL, oauth, parameters, keda.Version{}); err == nil || err.Error() != "its oauthTokenURI gives no token: status 401" {
		t.Errorf("got %v", err)
	}
	closed := tokenEndpoint(t, http.StatusOK)
	closed.Close()
	parameters.Parameters["oauthTokenURI"] = closed.URL
	if _, err := ask(t, server.URL, oauth, parameters, keda.Version{}); err == nil || !strings.HasPrefix(err.Error(), "its oauthTokenURI does not answer: ") || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

// signedFor verifies a signature by making it again from what was received.
func signedFor(t *testing.T, region, id, key, session string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || time.Since(at).Abs() > time.Minute {
			return false
		}
		again, err := http.NewRequestWithContext(t.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
		if err != nil {
			t.Error(err)
			return false
		}
		for name, values := range r.Header {
			if !slices.Contains([]string{"Authorization", "User-Agent", "Accept-Encoding"}, name) && !strings.HasPrefix(name, "X-Amz-") {
				again.Header[name] = values
			}
		}
		credentials := aws.Credentials{AccessKeyID: id, SecretAccessKey: key, SessionToken: session}
		if err := v4.NewSigner().SignHTTP(t.Context(), credentials, again, emptyBody, "aps", region, at); err != nil {
			t.Error(err)
			return false
		}
		return r.Header.Get("Authorization") == again.Header.Get("Authorization") && r.Header.Get("X-Amz-Security-Token") == session
	}
}

// TestSigV4: Amazon Managed Prometheus, by keys of the TriggerAuthentication
// and by the reader's own.
func TestSigV4(t *testing.T) {
	region := map[string]string{"awsRegion": "eu-west-1", "queryParameters": "dedup=a b"}
	server := httptest.NewServer(prometheus(signedFor(t, "eu-west-1", "AKID", secret, "session")))
	defer server.Close()
	base := server.URL + "/workspaces/ws-1"
	keys := given("awsAccessKeyID", "AKID", "awsSecretAccessKey", secret, "awsSessionToken", "session")
	if got, err := ask(t, base, region, keys, keda.Version{}); err != nil || got.Value != 3.5 || got.Note != "" {
		t.Errorf("keys: got %+v, %v", got, err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_SESSION_TOKEN", "session")
	for _, provider := range []string{"aws", "aws-eks"} {
		if got, err := ask(t, base, region, keda.Credentials{PodIdentity: provider}, keda.Version{}); err != nil || got.Value != 3.5 || !strings.Contains(got.Note, "your own AWS credentials") {
			t.Errorf("%s: got %+v, %v", provider, got, err)
		}
	}
	keys.Parameters["awsSecretAccessKey"] = "another"
	if _, err := ask(t, base, region, keys, keda.Version{}); err == nil || !strings.Contains(err.Error(), "status 403") {
		t.Errorf("wrong key: got %v", err)
	}
	// Without any credentials KEDA does not sign.
	if _, err := ask(t, base, region, keda.Credentials{}, keda.Version{}); err == nil || !strings.Contains(err.Error(), "does not sign") {
		t.Errorf("no key: got %v", err)
	}
}

func TestNoAWSCredentials(t *testing.T) {
	none := t.TempDir()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", none+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none+"/credentials")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	_, err := ask(t, "http://127.0.0.1:9", map[string]string{"awsRegion": "eu-west-1"}, keda.Credentials{PodIdentity: "aws"}, keda.Version{})
	if err == nil || err.Error() != errNoAWS.Error() {
		t.Errorf("got %v", err)
	}
}

func TestOtherClouds(t *testing.T) {
	for name, test := range map[string]struct {
		metadata map[string]string
		given    keda.Credentials
		want     string
	}{
		"azure":               {nil, keda.Credentials{PodIdentity: "azure-workload"}, "not read here, because KEDA shows an Azure workload identity"},
		"google":              {nil, keda.Credentials{PodIdentity: "gcp"}, "not read here, because KEDA shows a Google identity"},
		"google key":          {nil, given("GoogleApplicationCredentials", secret), "not read here, because KEDA shows a Google identity"},
		"identity and a mode": {map[string]string{"authModes": "bearer"}, keda.Credentials{PodIdentity: "aws", Parameters: map[string]string{"bearerToken": secret}}, "KEDA refuses it"},
		"no region":           {nil, keda.Credentials{PodIdentity: "aws"}, "no awsRegion"},
		"keys of the pod":     {map[string]string{"awsAccessKeyIDFromEnv": "ID", "awsRegion": "eu-west-1"}, keda.Credentials{}, "environment of the workload"},
	} {
		if _, err := FromTrigger(trigger("http://p.m", test.metadata), test.given, keda.Version{}); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// pair makes a self-signed certificate of a client.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "keda"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// TestTLS: a private authority and a client's certificate; the ca counts in
// every mode, and switches unsafeSsl off, as in KEDA.
func TestTLS(t *testing.T) {
	cert, key := pair(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	server := httptest.NewUnstartedServer(prometheus(func(r *http.Request) bool {
		return len(r.TLS.PeerCertificates) == 1 || r.Header.Get("Authorization") == "Bearer "+secret
	}))
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	otherCA, _ := pair(t)
	for name, test := range map[string]struct {
		metadata map[string]string
		given    keda.Credentials
		fails    string
	}{
		"certificate and ca":  {map[string]string{"authModes": "tls"}, given("cert", cert, "key", key, "ca", ca), ""},
		"bearer and ca":       {map[string]string{"authModes": "bearer"}, given("bearerToken", secret, "ca", ca), ""},
		"bearer and tls":      {map[string]string{"authModes": "bearer,tls"}, given("bearerToken", secret, "ca", ca, "cert", cert, "key", key), ""},
		"unsafe":              {map[string]string{"authModes": "bearer", "unsafeSsl": "true"}, given("bearerToken", secret), ""},
		"no trust":            {map[string]string{"authModes": "bearer"}, given("bearerToken", secret), "is not trusted here"},
		"unsafe with another": {map[string]string{"authModes": "bearer", "unsafeSsl": "true"}, given("bearerToken", secret, "ca", otherCA), "certificate"},
		"no pair":             {map[string]string{"authModes": "tls"}, given("cert", cert, "key", secret), "no pair"},
	} {
		got, err := ask(t, server.URL, test.metadata, test.given, keda.Version{})
		switch {
		case test.fails == "" && (err != nil || got.Value != 3.5):
			t.Errorf("%s: got %+v, %v", name, got, err)
		case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), secret)):
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestModesTogether: of bearer and custom KEDA shows the bearer token alone;
// apiKey adds nothing.
func TestModesTogether(t *testing.T) {
	for name, test := range map[string]struct {
		modes, header, custom string
	}{
		"bearer and custom": {"bearer,custom", "Bearer " + secret, ""},
		"custom":            {"custom", "", "key"},
		"custom, apiKey":    {"custom,apiKey", "", "key"},
	} {
		server := httptest.NewServer(prometheus(func(r *http.Request) bool {
			return r.Header.Get("Authorization") == test.header && r.Header.Get("X-Key") == test.custom
		}))
		if _, err := ask(t, server.URL, map[string]string{"authModes": test.modes}, given("bearerToken", secret, "customAuthHeader", "x-key", "customAuthValue", "key", "apiKey", secret), keda.Version{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
}

// TestTimeout: the trigger's own counts.
func TestTimeout(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	_, err := ask(t, server.URL, map[string]string{"timeout": "50"}, keda.Credentials{}, keda.Version{})
	if err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("got %v", err)
	}
}
