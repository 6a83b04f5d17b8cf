package prom

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

func TestPlaceOf(t *testing.T) {
	for host, want := range map[string]string{
		"p.m":                     "m/p/",
		"p.m.svc":                 "m/p/",
		"p.m.svc.cluster.local.":  "m/p/",
		"p-0.p.m.svc":             "m/p/p-0",
		"p-0.p.m.svc.corp.local":  "m/p/p-0",
		"prometheus":              "keda/prometheus/",
		"prometheus.example.com":  "",
		"svc.example.com":         "",
		"10.1.2.3":                "",
		"localhost":               "",
		"p%2f..m":                 "",
		"a.b/../../namespaces/kk": "",
	} {
		at, inside := placeOf(host, "keda")
		if got := at.Namespace + "/" + at.Service + "/" + at.Pod; inside != (want != "") || (inside && got != want) {
			t.Errorf("%s: got %v %q", host, inside, got)
		}
	}
	if _, inside := placeOf("prometheus", ""); inside {
		t.Error("a bare name is looked for without knowing KEDA's namespace")
	}
}

const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"no","code":%d}`

// apiServer answers for the proxies of services and pods.
func apiServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a credential of the trigger goes to the API server")
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/m/services/p:9090/proxy/base/api/v1/query"),
			strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/m/services/https:p:443/proxy/api/v1/query"),
			strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/m/pods/p-0:9090/proxy/api/v1/query"):
			fmt.Fprint(w, answer(`[{"metric":{},"value":[1,"7"]}]`))
		case strings.Contains(r.URL.Path, "/services/moved:"):
			http.Redirect(w, r, "/api/v1/namespaces/m/secrets", http.StatusFound)
		case strings.Contains(r.URL.Path, "/services/own:"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "Prometheus says no")
		case strings.Contains(r.URL.Path, "/services/missing:"), strings.Contains(r.URL.Path, "/services/p:80/"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, refusal, "NotFound", 404)
		default:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, refusal, "Forbidden", 403)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// TestWays: which way a request goes, and what is said where none leads there.
func TestWays(t *testing.T) {
	api := apiServer(t)
	behind := httptest.NewServer(prometheus(func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "Bearer "+secret || r.Header.Get("Impersonate-User") != "" || strings.HasPrefix(r.Host, "shut.m") || strings.HasPrefix(r.Host, "auth.m")
	}))
	defer behind.Close()
	var asked []string
	forward := func(ctx context.Context, namespace, service, pod, port string) (net.Conn, error) {
		asked = append(asked, namespace+"/"+service+"/"+pod+":"+port)
		if service == "nowhere" {
			return nil, errors.New("not permitted to create pods/portforward in m")
		}
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", strings.TrimPrefix(behind.URL, "http://"))
	}
	bearer := map[string]string{"authModes": "bearer"}
	for name, test := range map[string]struct {
		address  string
		metadata map[string]string
		without  bool
		via      string
		forwards string
		fails    string
	}{
		"service":                     {"http://p.m.svc:9090/base", nil, false, viaProxy, "", ""},
		"service with https":          {"https://p.m.svc", nil, false, viaProxy, "", ""},
		"one pod":                     {"http://p-0.p.m.svc.cluster.local:9090", nil, false, viaProxy, "", ""},
		"with a token":                {"http://p.m.svc:9090", bearer, false, viaForward, "m/p/:9090", ""},
		"impersonating":               {"http://p.m.svc:9090", map[string]string{"customHeaders": "impersonate-user=root"}, false, viaForward, "m/p/:9090", ""},
		"not permitted":               {"http://shut.m.svc:9090", nil, false, viaForward, "m/shut/:9090", ""},
		"no way":                      {"http://nowhere.m.svc:9090", nil, false, viaForward, "m/nowhere/:9090", "no permission to get services/proxy in m; by port-forward: no answer from nowhere.m.svc:9090: not permitted to create pods/portforward in m"},
		"not permitted, no forward":   {"http://shut.m.svc:9090", nil, true, viaProxy, "", "no permission to get services/proxy in m"},
		"refused by Prometheus":       {"http://own.m.svc:9090", nil, false, viaProxy, "", "own.m.svc:9090 answers with status 403"},
		"no such service":             {"http://missing.m.svc", nil, false, viaProxy, "", "service missing in m is not reached through the API server: NotFound (status 404)"},
		"redirected to the server":    {"http://moved.m.svc", nil, false, viaProxy, "", "answers with status 302"},
		"two names that are no place": {"http://p.localdomain-of-nobody", nil, false, viaDirect, "", "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			reader := Reader{Proxy: api.Client(), APIServer: api.URL, Forward: forward, Timeout: time.Minute}
			if test.without {
				reader.Forward = nil
			}
			source, err := FromTrigger(trigger(test.address, test.metadata), given("bearerToken", secret), keda.Version{})
			if err != nil {
				t.Fatal(err)
			}
			if test.via == viaDirect {
				reader.Forward = func(context.Context, string, string, string, string) (net.Conn, error) {
					return nil, errors.New("not here")
				}
				api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprintf(w, refusal, "NotFound", 404)
				}))
				defer api.Close()
				reader.APIServer = api.URL
			}
			got, err := reader.Read(t.Context(), source, keda.Version{}, moment)
			if got.Via != test.via || strings.Join(asked, " ") != test.forwards {
				t.Errorf("via %q, forwards %v", got.Via, asked)
			}
			switch {
			case test.fails == "" && err != nil:
				t.Error(err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails) || strings.Contains(err.Error(), secret)):
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOutsideInside: inside the cluster names are looked up, and the token
// endpoint of a service is reached like the service.
func TestOutsideInside(t *testing.T) {
	tokens := tokenEndpoint(t, http.StatusOK)
	metrics := httptest.NewServer(prometheus(func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer token-"+secret }))
	defer metrics.Close()
	var dialer net.Dialer
	reader := Reader{Proxy: http.DefaultClient, APIServer: "http://127.0.0.1:9", Timeout: time.Minute, Forward: func(ctx context.Context, _, service, _, _ string) (net.Conn, error) {
		address := metrics.URL
		if service == "keycloak" {
			address = tokens.URL
		}
		return dialer.DialContext(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	}}
	source, err := FromTrigger(trigger("http://p.m.svc:9090", map[string]string{"authModes": "oauth"}),
		given("oauthTokenURI", "http://keycloak.auth.svc/token", "clientID", "client", "clientSecret", secret, "scopes", "metrics,read", "endpointParams", "audience=prometheus"), keda.Version{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := reader.Read(t.Context(), source, keda.Version{}, moment); err != nil || got.Via != viaForward || got.Value != 3.5 {
		t.Errorf("got %+v, %v", got, err)
	}
	reader.Proxy, reader.Forward = nil, nil
	if got, err := reader.Read(t.Context(), source, keda.Version{}, moment); err == nil || got.Via != viaDirect {
		t.Errorf("got %+v, %v", got, err)
	}
}
