package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

var moment = time.Date(2026, 11, 30, 10, 20, 15, 0, time.UTC)

const secret = "s3cr3t-value"

func trigger(address string, metadata map[string]string) keda.Trigger {
	all := map[string]string{"serverAddress": address, "query": "sum(up)", "threshold": "1"}
	for key, value := range metadata {
		all[key] = value
	}
	return keda.Trigger{Type: "prometheus", Metadata: all}
}

func answer(result string) string {
	return `{"status":"success","data":{"resultType":"vector","result":` + result + `}}`
}

// TestRead: the request is KEDA's, with what each auth mode adds.
func TestRead(t *testing.T) {
	one := answer(`[{"metric":{},"value":[1,"3.5"]}]`)
	tests := map[string]struct {
		metadata, parameters map[string]string
		body                 string
		status               int
		check                func(*http.Request) bool
		value                float64
		fails                string
	}{
		"plain": {nil, nil, one, 200, func(r *http.Request) bool {
			return r.URL.Path == "/api/v1/query" && r.URL.Query().Get("query") == "sum(up)" && r.URL.Query().Get("time") == "2026-11-30T10:20:15Z" && !r.URL.Query().Has("namespace")
		}, 3.5, ""},
		"tenant": {map[string]string{"namespace": "llm", "queryParameters": "dedup=true,max=1"}, nil, one, 200, func(r *http.Request) bool {
			q := r.URL.Query()
			return q.Get("namespace") == "llm" && q.Get("dedup") == "true" && q.Get("max") == "1"
		}, 3.5, ""},
		"bearer": {map[string]string{"authModes": "bearer"}, map[string]string{"bearerToken": secret}, one, 200, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+secret }, 3.5, ""},
		"basic": {map[string]string{"authModes": "basic"}, map[string]string{"username": "u", "password": secret}, one, 200, func(r *http.Request) bool {
			user, password, _ := r.BasicAuth()
			return user == "u" && password == secret
		}, 3.5, ""},
		"custom": {map[string]string{"authModes": "custom", "customHeaders": "X-Scope-OrgID=team"}, map[string]string{"customAuthHeader": "X-Key", "customAuthValue": secret}, one, 200, func(r *http.Request) bool {
			return r.Header.Get("X-Key") == secret && r.Header.Get("X-Scope-OrgID") == "team"
		}, 3.5, ""},
		"empty is zero":     {nil, nil, answer(`[]`), 200, nil, 0, ""},
		"empty is an error": {map[string]string{"ignoreNullValues": "false"}, nil, answer(`[]`), 200, nil, 0, "empty"},
		"several":           {nil, nil, answer(`[{"metric":{},"value":[1,"1"]},{"metric":{},"value":[1,"2"]}]`), 200, nil, 0, "more than one series"},
		"refused":           {map[string]string{"authModes": "bearer"}, map[string]string{"bearerToken": secret}, "no", 403, nil, 0, "status 403"},
		"no Prometheus":     {nil, nil, "<html>", 200, nil, 0, "does not answer as Prometheus"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || (test.check != nil && !test.check(r)) {
					t.Errorf("request %s %s %v", r.Method, r.URL, r.Header)
				}
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer server.Close()
			source, err := FromTrigger(trigger(server.URL, test.metadata), keda.Credentials{Parameters: test.parameters}, keda.Version{})
			if err != nil {
				t.Fatal(err)
			}
			result, err := Reader{Timeout: time.Minute}.Read(t.Context(), source, keda.Version{}, moment)
			if result.Via != viaDirect {
				t.Errorf("via %q", result.Via)
			}
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), secret) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || result.Value != test.value {
				t.Errorf("got %v, %v", result, err)
			}
		})
	}
}

func TestFromTriggerRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		trigger keda.Trigger
		want    string
	}{
		"no prometheus": {keda.Trigger{Type: "cron"}, "no prometheus trigger"},
		"no address":    {trigger("prometheus", nil), "no URL"},
		"no token":      {trigger("http://p.m", map[string]string{"authModes": "bearer"}), "could not be read"},
		"no user":       {trigger("http://p.m", map[string]string{"authModes": "basic"}), "could not be read"},
		"no header":     {trigger("http://p.m", map[string]string{"authModes": "custom"}), "could not be read"},
		"oauth":         {trigger("http://p.m", map[string]string{"authModes": "oauth"}), "could not be read"},
		"unknown mode":  {trigger("http://p.m", map[string]string{"authModes": "magic"}), "unknown to KEDA"},
		"two modes":     {trigger("http://p.m", map[string]string{"authModes": "bearer,basic"}), "exclude each other"},
		"no key pair":   {trigger("http://p.m", map[string]string{"authModes": "tls"}), "client certificate could not be read"},
		"climbing":      {trigger("http://p.m/../../api/v1/secrets", nil), "more than the base"},
		"timeout":       {trigger("http://p.m", map[string]string{"timeout": "soon"}), "no duration"},
		"pairs":         {trigger("http://p.m", map[string]string{"queryParameters": "a=b=" + secret}), "k=v"},
		"headers":       {trigger("http://p.m", map[string]string{"customHeaders": secret}), "k=v"},
	} {
		if _, err := FromTrigger(test.trigger, keda.Credentials{}, keda.Version{}); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestNoSecretInErrors: neither a password in the address nor a parameter is
// told when the server does not answer.
func TestNoSecretInErrors(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	source, err := FromTrigger(trigger("http://user:"+secret+"@"+host, map[string]string{"queryParameters": "token=" + secret}), keda.Credentials{}, keda.Version{})
	if err != nil || source.Auth.Password != secret {
		t.Fatal(err)
	}
	_, err = Reader{Timeout: time.Minute}.Read(t.Context(), source, keda.Version{}, moment)
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), host) {
		t.Errorf("got %v", err)
	}
	source.Auth = Auth{CA: secret}
	if _, err := (Reader{Timeout: time.Minute}).Read(t.Context(), source, keda.Version{}, moment); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}
