package prom_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/prom"
)

// TestAuth: what a trigger shows its server, the Job shows too, with the values
// from its own variables.
func TestAuth(t *testing.T) {
	environ := map[string]string{"T": "token-value", "U": "me", "P": "pass-value", "N": "X-Key", "V": "header-value", "ID": "AKIDEXAMPLE", "S": "aws-secret-value"}
	for name, test := range map[string]struct {
		auth record.PrometheusAuth
		want func(*http.Request) bool
	}{
		"bearer": {record.PrometheusAuth{Bearer: "env:T"}, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer token-value" }},
		"basic": {record.PrometheusAuth{Username: "env:U", Password: "env:P"}, func(r *http.Request) bool {
			user, password, ok := r.BasicAuth()
			return ok && user == "me" && password == "pass-value"
		}},
		"custom header": {record.PrometheusAuth{Headers: map[string]string{"env:N": "env:V"}}, func(r *http.Request) bool { return r.Header.Get("X-Key") == "header-value" }},
		"tenant": {record.PrometheusAuth{Headers: map[string]string{"X-Scope-Orgid": "team"}, Parameters: map[string]string{"namespace": "llm"}}, func(r *http.Request) bool {
			return r.Header.Get("X-Scope-OrgID") == "team" && r.URL.Query().Get("namespace") == "llm" && r.Method == http.MethodGet
		}},
		"SigV4": {record.PrometheusAuth{AWS: &record.PrometheusAWS{Region: "eu-west-1", AccessKeyID: "env:ID", SecretAccessKey: "env:S"}}, func(r *http.Request) bool {
			return strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") && strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/aps/aws4_request")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := false
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = test.want(r)
				_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
			}))
			defer server.Close()
			environ["CA"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
			test.auth.CA = "env:CA"
			auth, err := test.auth.Resolve(func(name string) string { return environ[name] })
			if err != nil {
				t.Fatal(err)
			}
			client, err := prom.NewHTTP(t.Context(), auth, false)
			if err != nil {
				t.Fatal(err)
			}
			asking := prom.Client{HTTP: client, URL: server.URL, Parameters: auth.Parameters}
			if _, err := asking.Instant(t.Context(), "up", time.Now()); err != nil || !seen {
				t.Errorf("shown as it should be: %v, error %v", seen, err)
			}
		})
	}
}

// TestAuthTellsNoSecret: neither a redirect nor an error carries a credential.
func TestAuthTellsNoSecret(t *testing.T) {
	leaked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked = true }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	auth := record.PrometheusAuth{Bearer: "very-secret", Parameters: map[string]string{"p": "parameter-secret"}}
	client, err := prom.NewHTTP(t.Context(), auth, false)
	if err != nil {
		t.Fatal(err)
	}
	asking := prom.Client{HTTP: client, URL: server.URL, Parameters: auth.Parameters}
	_, redirected := asking.Instant(t.Context(), "up", time.Now())
	server.Close()
	_, gone := asking.Instant(t.Context(), "up", time.Now())
	if leaked || redirected == nil || failure.KindOf(gone) != failure.Unreachable {
		t.Errorf("leaked %v, %v, %v", leaked, redirected, gone)
	}
	for _, err := range []error{redirected, gone} {
		if text := failure.Text(err); strings.Contains(text, "secret") {
			t.Error(text)
		}
	}
	if _, err := prom.NewHTTP(t.Context(), record.PrometheusAuth{CA: "secret"}, false); failure.KindOf(err) != failure.Usage || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if _, err := (record.PrometheusAuth{Bearer: "env:GONE"}).Resolve(func(string) string { return "" }); failure.KindOf(err) != failure.Usage || !strings.Contains(err.Error(), "GONE") {
		t.Errorf("%v", err)
	}
}
