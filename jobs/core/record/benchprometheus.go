package record

import (
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// PrometheusAuth is what a Prometheus is shown, as KEDA shows it for a trigger.
// No credential is part of it: a text that begins with FromEnv names the
// variable of the process that has the value, from the same Secret that KEDA
// reads.
type PrometheusAuth struct {
	Bearer   string `json:"bearer,omitempty"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// CA, Cert and Key are PEM.
	CA   string `json:"ca,omitempty"`
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// Headers are added to each request, Parameters to its URL, such as the
	// namespace or the tenant. A header's name may come from a Secret too.
	Headers    map[string]string `json:"headers,omitempty"`
	Parameters map[string]string `json:"parameters,omitempty"`
	AWS        *PrometheusAWS    `json:"aws,omitempty"`
}

// PrometheusAWS signs requests for Amazon Managed Prometheus (SigV4, service
// aps). Without a key the process's own identity signs: that of its
// ServiceAccount.
type PrometheusAWS struct {
	Region          string `json:"region"`
	AccessKeyID     string `json:"access_key_id,omitempty"`
	SecretAccessKey string `json:"secret_access_key,omitempty"`
	SessionToken    string `json:"session_token,omitempty"`
}

// FromEnv begins a text that names a variable of the process.
const FromEnv = "env:"

// secrets are the texts that must name a variable.
func (a PrometheusAuth) secrets() []string {
	all := []string{a.Bearer, a.Password, a.Key}
	if a.AWS != nil {
		all = append(all, a.AWS.SecretAccessKey, a.AWS.SessionToken)
	}
	return all
}

func (a PrometheusAuth) validate() error {
	for _, text := range a.secrets() {
		if text != "" && !strings.HasPrefix(text, FromEnv) {
			return failure.New(failure.Usage, "name a variable: "+FromEnv+"NAME", "read bench plan: prometheus.auth holds a credential")
		}
	}
	for _, pairs := range []map[string]string{a.Headers, a.Parameters} {
		for name, value := range pairs {
			if strings.HasPrefix(value, FromEnv) {
				continue
			}
			if err := CheckHeader(name, value); err != nil {
				return failure.New(failure.Usage, "put it into a Secret and let the trigger's TriggerAuthentication name it (authModes custom)", "read bench plan: prometheus.auth: %w", err)
			}
		}
	}
	if a.AWS != nil && a.AWS.Region == "" {
		return failure.New(failure.Usage, "", "read bench plan: prometheus.auth.aws has no region")
	}
	return nil
}

// Resolve returns the auth with the values of its variables. The error names a
// variable that is empty, and never a value.
func (a PrometheusAuth) Resolve(getenv func(string) string) (PrometheusAuth, error) {
	var missing string
	value := func(text string) string {
		name, named := strings.CutPrefix(text, FromEnv)
		if !named {
			return text
		}
		found := getenv(name)
		if found == "" {
			missing = name
		}
		return found
	}
	pairs := func(from map[string]string) map[string]string {
		if from == nil {
			return nil
		}
		to := make(map[string]string, len(from))
		for name, text := range from {
			to[value(name)] = value(text)
		}
		return to
	}
	for _, text := range []*string{&a.Bearer, &a.Username, &a.Password, &a.CA, &a.Cert, &a.Key} {
		*text = value(*text)
	}
	a.Headers, a.Parameters = pairs(a.Headers), pairs(a.Parameters)
	if a.AWS != nil {
		a.AWS = &PrometheusAWS{Region: value(a.AWS.Region), AccessKeyID: value(a.AWS.AccessKeyID), SecretAccessKey: value(a.AWS.SecretAccessKey), SessionToken: value(a.AWS.SessionToken)}
	}
	if missing != "" {
		return a, failure.New(failure.Usage, "set the environment variable "+missing, "read the credentials of Prometheus: %s is empty", missing)
	}
	return a, nil
}
