// Package prom asks the Prometheus of a trigger for its value of now, with what
// the trigger knows: its address, its query, its tenant and its credentials.
// Asking is passive: unlike the external metrics API it changes nothing in
// KEDA. No credential is ever part of an error.
package prom

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Source is one trigger's query and the way to it.
type Source struct {
	// Address is the server's base, without credentials.
	Address *url.URL
	Query   string
	// Namespace and Parameters are added to the query's URL, Headers to the
	// request.
	Namespace           string
	Parameters, Headers map[string]string
	// EmptyIsZero is ignoreNullValues.
	EmptyIsZero bool
	// Insecure accepts any certificate (unsafeSsl).
	Insecure bool
	// Timeout is the trigger's own; 0 without one.
	Timeout time.Duration
	Auth    Auth
	// Note says what is different from KEDA's own request, or odd about it; ""
	// where nothing is.
	Note string
}

// FromTrigger reads a prometheus trigger as a version of KEDA does, with what
// its authenticationRef gives.
func FromTrigger(trigger keda.Trigger, given keda.Credentials, version keda.Version) (Source, error) {
	source := Source{
		Query: trigger.Query(), Namespace: trigger.Metadata["namespace"],
		EmptyIsZero: trigger.EmptyIsZero(), Insecure: isTrue(trigger.Metadata["unsafeSsl"]),
		Headers: map[string]string{},
	}
	if source.Query == "" {
		return source, fmt.Errorf("it is no prometheus trigger")
	}
	if err := source.locate(trigger.Metadata["serverAddress"]); err != nil {
		return source, err
	}
	var err error
	if source.Parameters, err = pairs(trigger.Metadata["queryParameters"]); err != nil {
		return source, fmt.Errorf("its queryParameters %w", err)
	}
	headers, err := pairs(trigger.Metadata["customHeaders"])
	if err != nil {
		return source, fmt.Errorf("its customHeaders %w", err)
	}
	for name, value := range headers {
		source.Headers[http.CanonicalHeaderKey(name)] = value
	}
	if source.Timeout, err = span(trigger.Metadata["timeout"]); err != nil {
		return source, err
	}
	return source, source.authenticate(trigger, given, version)
}

// locate reads the server's address. A path that leads elsewhere would lead the
// API server's proxy elsewhere too.
func (s *Source) locate(text string) error {
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return errors.New("its serverAddress is no URL")
	}
	if address.RawQuery != "" || address.Fragment != "" || slices.Contains(strings.Split(address.Path, "/"), "..") {
		return errors.New("its serverAddress is more than the base of a server")
	}
	if address.User != nil {
		s.Auth.Username = address.User.Username()
		s.Auth.Password, _ = address.User.Password()
		address.User = nil
	}
	s.Address = address
	return nil
}

func isTrue(text string) bool {
	value, err := strconv.ParseBool(text)
	return err == nil && value
}

// span reads a duration such as 5s, or a number of milliseconds.
func span(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	read, err := time.ParseDuration(text)
	if milli, wrong := strconv.ParseInt(text, 10, 64); err != nil && wrong == nil {
		read, err = time.Duration(milli)*time.Millisecond, nil
	}
	if err != nil || read < 0 {
		return 0, errors.New("its timeout is no duration")
	}
	return read, nil
}

// pairs reads k=v,k=v as KEDA does: a value with a second = is refused.
func pairs(text string) (map[string]string, error) {
	read := map[string]string{}
	if text == "" {
		return read, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		parts := strings.Split(one, "=")
		if len(parts) != 2 {
			return nil, fmt.Errorf("are not k=v,k=v")
		}
		read[strings.TrimSpace(parts[0])] = strings.TrimSpace(parts[1])
	}
	return read, nil
}

// question is the query at a moment, as part of a URL.
func (s Source) question(at time.Time) url.Values {
	values := url.Values{"query": {s.Query}, "time": {at.UTC().Format(time.RFC3339)}}
	if s.Namespace != "" {
		values.Set("namespace", s.Namespace)
	}
	for name, value := range s.Parameters {
		values.Add(name, value)
	}
	return values
}
