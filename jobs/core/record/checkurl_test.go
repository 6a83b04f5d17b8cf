package record_test

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// TestCheckURL: plans are stored and shown, so nothing secret may come with the
// base of a server, and no error repeats what may be one.
func TestCheckURL(t *testing.T) {
	for raw, good := range map[string]bool{
		"http://host":                 true,
		"https://host:9000/base/":     true,
		"http://me:passw0rd@host":     false,
		"http://host/?token=passw0rd": false,
		"http://host/#passw0rd":       false,
		"http://host?":                false,
		"ftp://host/?token=passw0rd":  false,
		"http://[::1%25passw0rd/\x7f": false,
		"host:9000":                   false,
		"":                            false,
	} {
		err := record.CheckURL(raw)
		if (err == nil) != good {
			t.Errorf("%q: %v", raw, err)
		}
		if err != nil && strings.Contains(err.Error(), "passw0rd") {
			t.Errorf("%q: the error repeats it: %v", raw, err)
		}
	}
}
