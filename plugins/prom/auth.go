package prom

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Auth is what the server is shown. Empty fields are not used.
type Auth struct {
	Bearer             string
	Username, Password string
	// CA, Cert and Key are PEM.
	CA, Cert, Key string
	// OAuth is where a token comes from, AWS what requests are signed with.
	OAuth *OAuth
	AWS   *AWS
}

// OAuth is the client credentials flow.
type OAuth struct {
	TokenURL               string
	ClientID, ClientSecret string
	Scopes                 []string
	Params                 url.Values
}

// authorizes says that the request carries an Authorization header, or will.
func (a Auth) authorizes() bool {
	return a.Bearer != "" || a.Username != "" || a.OAuth != nil || a.AWS != nil
}

// The modes that KEDA knows. apiKey is accepted, and adds nothing to a request
// to Prometheus.
func knownModes() []string { return []string{"apiKey", "basic", "tls", "bearer", "custom", "oauth"} }

// modes returns the trigger's authModes; KEDA refuses unknown ones, and more
// than one that fills in the Authorization header.
func modes(trigger keda.Trigger, parameters map[string]string) ([]string, error) {
	text := cmp.Or(trigger.Metadata["authModes"], trigger.Metadata["authMode"], parameters["authModes"], parameters["authMode"])
	var given []string
	authorizing := 0
	for mode := range strings.SplitSeq(text, ",") {
		switch mode = strings.TrimSpace(mode); mode {
		case "":
			continue
		case "bearer", "basic", "oauth":
			authorizing++
		default:
			if !slices.Contains(knownModes(), mode) {
				return nil, fmt.Errorf("its authMode %q is unknown to KEDA", mode)
			}
		}
		given = append(given, mode)
	}
	if authorizing > 1 {
		return nil, errors.New("its authModes exclude each other: KEDA refuses it")
	}
	return given, nil
}

// authenticate takes what the trigger's authModes name. With none, KEDA looks
// for the identity of a cloud.
func (s *Source) authenticate(trigger keda.Trigger, given keda.Credentials, version keda.Version) error {
	parameters := given.Parameters
	enabled, err := modes(trigger, parameters)
	switch {
	case err != nil:
		return err
	case len(enabled) == 0:
		return s.identify(trigger, given)
	case given.HasPodIdentity():
		return errors.New("it has both authModes and a pod identity: KEDA refuses it")
	}
	for _, mode := range enabled {
		if err := s.enable(mode, parameters, version); err != nil {
			return err
		}
	}
	// The ca counts in every mode, and then certificates are checked whatever
	// unsafeSsl says.
	if s.Auth.CA = parameters["ca"]; s.Auth.CA != "" || slices.Contains(enabled, "tls") {
		s.Auth.Cert, s.Auth.Key, s.Insecure = parameters["cert"], parameters["key"], false
	}
	// Of bearer, basic and custom KEDA uses the first.
	if slices.Contains(enabled, "custom") && !slices.Contains(enabled, "bearer") && !slices.Contains(enabled, "basic") {
		s.Headers[http.CanonicalHeaderKey(parameters["customAuthHeader"])] = parameters["customAuthValue"]
	}
	return nil
}

func (s *Source) enable(mode string, parameters map[string]string, version keda.Version) error {
	switch mode {
	case "bearer":
		if s.Auth.Bearer = cmp.Or(parameters["bearerToken"], parameters["token"]); s.Auth.Bearer == "" {
			return errors.New("its bearer token could not be read")
		}
	case "basic":
		if s.Auth.Username, s.Auth.Password = parameters["username"], parameters["password"]; s.Auth.Username == "" {
			return errors.New("its user name could not be read")
		}
	case "tls":
		if parameters["cert"] == "" || parameters["key"] == "" {
			return errors.New("its client certificate could not be read")
		}
	case "custom":
		if parameters["customAuthHeader"] == "" || parameters["customAuthValue"] == "" {
			return errors.New("its header could not be read")
		}
	case "oauth":
		return s.enableOAuth(parameters, version)
	}
	return nil
}

// enableOAuth: KEDA sends prometheus triggers' tokens since 2.21.
func (s *Source) enableOAuth(parameters map[string]string, version keda.Version) error {
	if parameters["oauthTokenURI"] == "" || parameters["clientID"] == "" {
		return errors.New("its oauthTokenURI and clientID could not be read")
	}
	if !version.SendsOAuth() {
		s.Note = "KEDA " + version.String() + " accepts authMode oauth here and sends no token; 2.21 does"
		return nil
	}
	oauth := &OAuth{TokenURL: parameters["oauthTokenURI"], ClientID: parameters["clientID"], ClientSecret: parameters["clientSecret"]}
	for scope := range strings.SplitSeq(cmp.Or(parameters["scopes"], parameters["scope"]), ",") {
		if scope = strings.TrimSpace(scope); scope != "" {
			oauth.Scopes = append(oauth.Scopes, scope)
		}
	}
	var err error
	if oauth.Params, err = url.ParseQuery(parameters["endpointParams"]); err != nil {
		return errors.New("its endpointParams are not k=v&k=v")
	}
	if address, err := url.Parse(oauth.TokenURL); err != nil || address.Host == "" {
		return errors.New("its oauthTokenURI is no URL")
	}
	s.Auth.OAuth = oauth
	return nil
}
