package prom

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// largestAnswer bounds the memory of one answer: one series is expected.
const largestAnswer = 4 << 20

// Answer is what a server said.
type Answer struct {
	Status int
	Body   []byte
	// Via is "proxy", "port-forward" or "direct".
	Via string
}

// Ask makes a GET request of the server's API, such as /api/v1/query, with all
// that the trigger shows it. Status may be any. Errors hold no credential.
func (r Reader) Ask(ctx context.Context, source Source, path string, values url.Values) (Answer, error) {
	at, inside := placeOf(source.Address.Hostname(), r.Home)
	outside := r.Proxy != nil
	switch {
	case !outside || !inside:
		return r.connect(ctx, source, path, values, viaDirect)
	case r.Forward != nil && eaten(source):
		return r.forward(ctx, source, at, path, values, "")
	case eaten(source):
		return r.connect(ctx, source, path, values, viaDirect)
	}
	proxy := *r.Proxy
	proxy.CheckRedirect = stay
	answer, err := do(ctx, &proxy, strings.TrimSuffix(r.APIServer, "/")+at.path(source.Address)+path, values, source, viaProxy)
	if err != nil {
		return answer, err
	}
	refused := refusalOf(answer)
	switch {
	case refused == "":
		return answer, nil
	case refused == "NotFound" && at.Unsure:
		return r.connect(ctx, source, path, values, viaDirect)
	case refused == "Forbidden" && r.Forward != nil:
		return r.forward(ctx, source, at, path, values, right(at))
	case refused == "Forbidden":
		return answer, fmt.Errorf("%s is not reached through the API server: %s", at, right(at))
	}
	return answer, fmt.Errorf("%s is not reached through the API server: %s (status %d)", at, refused, answer.Status)
}

// right is the permission that the API server's proxy needs.
func right(at place) string {
	kind := "services"
	if at.Pod != "" {
		kind = "pods"
	}
	return fmt.Sprintf("no permission to get %s/proxy in %s", kind, at.Namespace)
}

// forward asks over a port-forward; before says why the proxy did not do.
func (r Reader) forward(ctx context.Context, source Source, at place, path string, values url.Values, before string) (Answer, error) {
	answer, err := r.connect(ctx, source, path, values, viaForward)
	if err != nil && before != "" {
		err = fmt.Errorf("%s is not reached: %s; by port-forward: %w", at, before, err)
	}
	return answer, err
}

// connect asks the server itself, be it over a port-forward.
func (r Reader) connect(ctx context.Context, source Source, path string, values url.Values, via string) (Answer, error) {
	client, closeIdle, err := r.client(ctx, source)
	if err != nil {
		return Answer{Via: via}, err
	}
	defer closeIdle()
	return do(ctx, client, strings.TrimSuffix(source.Address.String(), "/")+path, values, source, via)
}

func do(ctx context.Context, client *http.Client, target string, values url.Values, source Source, via string) (Answer, error) {
	answer := Answer{Via: via}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target+"?"+values.Encode(), nil)
	if err != nil {
		return answer, fmt.Errorf("its serverAddress is no URL")
	}
	for name, header := range source.Headers {
		request.Header.Set(name, header)
	}
	switch {
	case via == viaProxy:
	case source.Auth.Bearer != "":
		request.Header.Set("Authorization", "Bearer "+source.Auth.Bearer)
	case source.Auth.Username != "" && request.Header.Get("Authorization") == "":
		request.SetBasicAuth(source.Auth.Username, source.Auth.Password)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer, told(source, err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	answer.Status = response.StatusCode
	if answer.Body, err = io.ReadAll(io.LimitReader(response.Body, largestAnswer)); err != nil {
		return answer, told(source, err)
	}
	return answer, nil
}

// eaten says whether the API server's proxy would change the request: it keeps
// an Authorization header and the certificates of a client to itself, obeys
// headers about who asks, and does not check a server's certificate.
func eaten(source Source) bool {
	if source.Auth.authorizes() || source.Auth.Cert != "" || (source.Address.Scheme == "https" && source.Auth.CA != "") {
		return true
	}
	for name := range source.Headers {
		name = http.CanonicalHeaderKey(name)
		if name == "Authorization" || name == "Proxy-Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			return true
		}
	}
	return false
}

// refusalOf is the reason of an answer that is the API server's own; "" for
// one of the server behind it.
func refusalOf(answer Answer) string {
	if answer.Status < http.StatusBadRequest {
		return ""
	}
	var status struct{ Kind, APIVersion, Reason string }
	if json.Unmarshal(answer.Body, &status) != nil || status.Kind != "Status" || status.APIVersion != "v1" {
		return ""
	}
	if status.Reason == "" {
		return "Unknown"
	}
	return status.Reason
}
