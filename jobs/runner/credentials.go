package runner

import (
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// oneLine are the variables that hold a credential, or a URL that may hold one.
// Each is a single line, whichever job reads it.
var oneLine = []string{
	"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY", "AWS_SECRET_KEY",
	"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy",
}

// tidy takes the white space off credentials: a Secret that was made with echo
// or from a file ends in a newline, which no header can carry. What is left with
// a control character in it is refused, and never shown. more names further
// variables; the environment of this process, which the SDK of AWS and net/http
// read by themselves, is put right as well.
func tidy(getenv func(string) string, emit func(record.Event), more ...string) (func(string) string, error) {
	tidied := make(map[string]string)
	for _, name := range append(slices.Clone(oneLine), more...) {
		if name == "" {
			continue
		}
		value := getenv(name)
		clean := strings.TrimSpace(value)
		if strings.ContainsFunc(clean, unicode.IsControl) {
			return nil, failure.New(failure.Usage, "write it anew as one line, such as `printf %s VALUE`; in a Job it comes from the Secret that a flag names",
				"read %s: it has a newline or another control character inside", name)
		}
		tidied[name] = clean
		if os.Getenv(name) == value && clean != value {
			if err := os.Setenv(name, clean); err != nil {
				return nil, err
			}
		}
		if clean != value && emit != nil {
			emit(record.Event{Level: record.Warning, Name: "warning", Message: name + " begins or ends with white space, which is left out here; other programs that read it may fail"})
		}
	}
	return func(name string) string {
		if value, known := tidied[name]; known {
			return value
		}
		return getenv(name)
	}, nil
}
