// Package prom reads windows of series from a server that speaks the Prometheus
// HTTP API. What a server does not have is absent, never 0.
package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// maxAnswer bounds the memory of one answer.
const maxAnswer = 64 << 20

// Client queries one server.
type Client struct {
	HTTP *http.Client
	// URL is the server's base, with its path prefix where there is one.
	URL string
	// Token is a bearer token; empty sends none.
	Token string
	// Parameters are added to the URL of each request, such as a tenant.
	Parameters map[string]string
}

// Series is one series of a result: its labels and its samples in order of
// time. Samples that are not a number are left out.
type Series struct {
	Labels  map[string]string
	Samples []Sample
}

// Sample is one value at one time.
type Sample struct {
	Time  time.Time
	Value float64
}

// Range evaluates query at start, start+step, ... up to end.
func (c *Client) Range(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error) {
	return c.get(ctx, "query_range", url.Values{
		"query": {query}, "start": {seconds(start)}, "end": {seconds(end)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// Instant evaluates query at one moment.
func (c *Client) Instant(ctx context.Context, query string, at time.Time) ([]Series, error) {
	return c.get(ctx, "query", url.Values{"query": {query}, "time": {seconds(at)}})
}

// Ready asks the server for the value of a constant, to learn before a run
// whether it can be reached.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.get(ctx, "query", url.Values{"query": {"vector(1)"}})
	return err
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

func (c *Client) get(ctx context.Context, path string, form url.Values) ([]Series, error) {
	act := "query Prometheus at " + c.URL
	for name, value := range c.Parameters {
		form.Set(name, value)
	}
	// A GET, as KEDA sends: proxies that tell tenants apart may allow no other.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+"/api/v1/"+path+"?"+form.Encode(), nil)
	if err != nil {
		return nil, failure.New(failure.Usage, "", "%s: %w", act, withoutURL(err))
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.HTTP.Do(request)
	var own *failure.Error
	if errors.As(err, &own) {
		return nil, failure.New(own.Kind, own.Hint, "%s: %w", act, own.Err)
	}
	if err != nil {
		return nil, failure.New(failure.Unreachable, "check the address, and that it can be reached from here", "%s: %w", act, withoutURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, failure.New(failure.Unreachable, "", "%s: %w", act, err)
	}
	var a answer
	notJSON := json.Unmarshal(body, &a)
	switch {
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return nil, failure.New(failure.Denied, "let the trigger's TriggerAuthentication name credentials that may query it", "%s: status %d", act, response.StatusCode)
	case response.StatusCode == http.StatusNotFound:
		return nil, failure.New(failure.NotFound, "the address must be the base of the Prometheus API, without /api/v1", "%s: status %d", act, response.StatusCode)
	case notJSON != nil:
		return nil, failure.New(failure.Failed, "", "%s: status %d and no JSON", act, response.StatusCode)
	case a.Status != "success":
		return nil, failure.New(failure.Failed, "", "%s: %s", act, failure.Clean(a.Error))
	}
	series, err := parse(a.Data.ResultType, a.Data.Result)
	if err != nil {
		return nil, failure.New(failure.Failed, "", "%s: %w", act, err)
	}
	return series, nil
}

// withoutURL drops the URL of a client's error: it holds the whole query, and
// its parameters may be credentials.
func withoutURL(err error) error {
	var address *url.Error
	for errors.As(err, &address) {
		err = address.Err
	}
	return err
}

func parse(kind string, result json.RawMessage) ([]Series, error) {
	if kind != "matrix" && kind != "vector" {
		return nil, fmt.Errorf("the result is a %q, not a matrix or vector", kind)
	}
	var raw []struct {
		Metric map[string]string `json:"metric"`
		Values []point           `json:"values"`
		Value  *point            `json:"value"`
	}
	if err := json.Unmarshal(result, &raw); err != nil {
		return nil, err
	}
	all := make([]Series, 0, len(raw))
	for _, one := range raw {
		if one.Value != nil {
			one.Values = append(one.Values, *one.Value)
		}
		series := Series{Labels: one.Metric}
		for _, p := range one.Values {
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				series.Samples = append(series.Samples, Sample(p))
			}
		}
		all = append(all, series)
	}
	return all, nil
}

// point is a sample as the API writes it: [seconds, "value"].
type point Sample

func (p *point) UnmarshalJSON(data []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	var at float64
	var text string
	if err := json.Unmarshal(pair[0], &at); err != nil {
		return err
	}
	if err := json.Unmarshal(pair[1], &text); err != nil {
		return err
	}
	value, err := strconv.ParseFloat(text, 64)
	p.Time, p.Value = time.UnixMilli(int64(math.Round(at*1000))).UTC(), value
	return err
}
