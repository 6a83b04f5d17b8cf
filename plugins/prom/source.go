// Package prom asks the Prometheus of a trigger for its value of now, with what
// the trigger knows: its address, its query, its tenant and its credentials.
// Asking is passive: unlike the external metrics API it changes nothing in
// KEDA. No credential is ever part of an error.
package prom

import (
	"fmt"
	"net/url"
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
	Auth     Auth
}

// Auth is what the server is shown. Empty fields are not used.
type Auth struct {
	Bearer             string
	Username, Password string
	// CA, Cert and Key are PEM.
	CA, Cert, Key string
}

// authorizes says that the request carries an Authorization header.
func (a Auth) authorizes() bool { return a.Bearer != "" || a.Username != "" }

// FromTrigger reads a prometheus trigger. parameters are those that its
// TriggerAuthentication gives, by KEDA's names.
func FromTrigger(trigger keda.Trigger, parameters map[string]string) (Source, error) {
	source := Source{
		Query: trigger.Query(), Namespace: trigger.Metadata["namespace"],
		EmptyIsZero: trigger.EmptyIsZero(), Insecure: trigger.Metadata["unsafeSsl"] == "true",
		Headers: map[string]string{},
	}
	if source.Query == "" {
		return source, fmt.Errorf("it is no prometheus trigger")
	}
	address, err := url.Parse(trigger.Metadata["serverAddress"])
	if err != nil || address.Host == "" || (address.Scheme != "http" && address.Scheme != "https") {
		return source, fmt.Errorf("its serverAddress is no URL")
	}
	if address.User != nil {
		source.Auth.Username = address.User.Username()
		source.Auth.Password, _ = address.User.Password()
		address.User = nil
	}
	source.Address = address
	if source.Parameters, err = pairs(trigger.Metadata["queryParameters"]); err != nil {
		return source, fmt.Errorf("its queryParameters %w", err)
	}
	headers, err := pairs(trigger.Metadata["customHeaders"])
	if err != nil {
		return source, fmt.Errorf("its customHeaders %w", err)
	}
	for name, value := range headers {
		source.Headers[name] = value
	}
	return source, source.authenticate(trigger, parameters)
}

// authenticate takes the parameters that the trigger's authModes name.
func (s *Source) authenticate(trigger keda.Trigger, parameters map[string]string) error {
	modes := trigger.Metadata["authModes"]
	if modes == "" {
		modes = trigger.Metadata["authMode"]
	}
	for mode := range strings.SplitSeq(modes, ",") {
		switch mode = strings.TrimSpace(mode); mode {
		case "":
		case "bearer":
			s.Auth.Bearer = parameters["bearerToken"]
			if s.Auth.Bearer == "" {
				return fmt.Errorf("its bearer token could not be read")
			}
		case "basic":
			s.Auth.Username, s.Auth.Password = parameters["username"], parameters["password"]
			if s.Auth.Username == "" {
				return fmt.Errorf("its user name could not be read")
			}
		case "tls":
			s.Auth.CA, s.Auth.Cert, s.Auth.Key = parameters["ca"], parameters["cert"], parameters["key"]
		case "custom":
			if parameters["customAuthHeader"] == "" {
				return fmt.Errorf("its header could not be read")
			}
			s.Headers[parameters["customAuthHeader"]] = parameters["customAuthValue"]
		default:
			return fmt.Errorf("the authMode %q is not supported here", mode)
		}
	}
	if trigger.Metadata["awsRegion"] != "" {
		return fmt.Errorf("it signs requests for AWS, which is not supported here")
	}
	return nil
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

// target is the URL of the query at a moment, below base.
func (s Source) target(base string, at time.Time) string {
	values := url.Values{"query": {s.Query}, "time": {at.UTC().Format(time.RFC3339)}}
	if s.Namespace != "" {
		values.Set("namespace", s.Namespace)
	}
	for name, value := range s.Parameters {
		values.Set(name, value)
	}
	return strings.TrimSuffix(base, "/") + "/api/v1/query?" + values.Encode()
}
