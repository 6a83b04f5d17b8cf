package record

import (
	"crypto/x509"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// maxCA bounds the certificates within a plan: it travels in the environment of
// a process, where a value has 128 KiB.
const maxCA = 48 << 10

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}$")
	// secretName and secretValue look like credentials: plans are stored, shown
	// and logged.
	secretName  = regexp.MustCompile(`(?i)(^|[-_])(authorization|cookie|token|secret|password|passwd|credentials?|api[-_]?key|apikey|key|signature|auth)($|[-_])`)
	secretValue = regexp.MustCompile(`(?i)^\s*(bearer|basic|token)\s+\S|^(sk|hf|ghp|gho|xox[a-z])[-_][A-Za-z0-9]|^eyJ[A-Za-z0-9_-]+\.|\bAKIA[0-9A-Z]{12}`)
	// ownHeaders are set by the client itself.
	ownHeaders = []string{"accept-encoding", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "proxy-connection", "expect"}
)

// ParseHeader reads a header as the flag has it: NAME: VALUE.
func ParseHeader(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" {
		// The text may be a credential, so it is not repeated.
		return "", "", failure.New(failure.Usage, `write it as "NAME: VALUE", such as --header "x-tenant: research"`, "read --header: there is no colon after a name")
	}
	value = strings.TrimSpace(value)
	return name, value, CheckHeader(name, value)
}

// CheckHeader refuses a header that cannot be sent, or that looks like a
// credential.
func CheckHeader(name, value string) error {
	refuse := func(hint, cause string) error {
		if !headerName.MatchString(name) {
			name = "(not shown)"
		}
		return failure.New(failure.Usage, hint, "read header %s: %s", name, cause)
	}
	switch {
	case !headerName.MatchString(name):
		return refuse("", "the name has a character that headers do not have")
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return refuse("", "the value has a control character")
	case secretName.MatchString(name) || secretValue.MatchString(value):
		return refuse("plans are stored and shown: put an API key into a Secret and name it with --api-key-secret; with --local, set OPENAI_API_KEY", "it looks like a credential")
	case slices.Contains(ownHeaders, strings.ToLower(name)):
		return refuse("", "the client sets it itself")
	}
	return nil
}

// CheckCA refuses what is not a list of certificates in PEM.
func CheckCA(pem string) error {
	hint := "give a file of certificates that begin with -----BEGIN CERTIFICATE-----"
	switch {
	case len(pem) > maxCA:
		return failure.New(failure.Usage, "give only the authority of this server, not a whole bundle", "read CA certificates: %d bytes are more than %d", len(pem), maxCA)
	case strings.Contains(pem, "PRIVATE KEY"):
		return failure.New(failure.Usage, hint, "read CA certificates: a private key is in it")
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(pem)):
		return failure.New(failure.Usage, hint, "read CA certificates: there is none")
	}
	return nil
}

func (t BenchTarget) validate() error {
	secure := strings.HasPrefix(strings.ToLower(t.URL), "https:")
	refuse := func(hint, format string, args ...any) error {
		return failure.New(failure.Usage, hint, "read bench plan: "+format, args...)
	}
	switch {
	case !slices.Contains([]string{"", HTTP1, HTTP2, HTTP2Clear}, t.HTTP):
		return refuse("", "target.http %q is none of %s, %s, %s", t.HTTP, HTTP1, HTTP2, HTTP2Clear)
	case t.HTTP == HTTP2 && !secure:
		return refuse("for an http URL it is "+HTTP2Clear, "target.http %s needs an https URL", HTTP2)
	case t.HTTP == HTTP2Clear && secure:
		return refuse("for an https URL it is "+HTTP2, "target.http %s needs an http URL", HTTP2Clear)
	case t.Insecure && (t.CA != "" || t.CAEnv != ""):
		return refuse("leave one of them out", "a CA has no effect where any certificate is accepted")
	}
	if t.CA != "" {
		if err := CheckCA(t.CA); err != nil {
			return err
		}
	}
	for name, value := range t.Headers {
		if err := CheckHeader(name, value); err != nil {
			return err
		}
	}
	return nil
}
