package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunFails(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown flag":  {[]string{"--nothing"}, "not defined: -nothing"},
		"no kubeconfig": {[]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, "read configuration"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			err := run(t.Context(), test.args, &stderr)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}
