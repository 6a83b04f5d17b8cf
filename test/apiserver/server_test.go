package apiserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

var cluster apiserver.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func get(t *testing.T, config *rest.Config, path string) (int, string) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestAccess(t *testing.T) {
	server := cluster.Start(t)
	anonymous := server.Config(apiserver.Guest)
	anonymous.BearerToken = ""
	stranger := server.Config(apiserver.Guest)
	stranger.BearerToken = "made-up"
	tests := map[string]struct {
		config *rest.Config
		path   string
		want   int
	}{
		"admin reads pods":             {server.Config(apiserver.Admin), "/api/v1/pods", http.StatusOK},
		"guest discovers":              {server.Config(apiserver.Guest), "/apis", http.StatusOK},
		"guest reads no pods":          {server.Config(apiserver.Guest), "/api/v1/pods", http.StatusForbidden},
		"nobody reads no pods":         {anonymous, "/api/v1/pods", http.StatusForbidden},
		"an unknown token is refused":  {stranger, "/api/v1/pods", http.StatusUnauthorized},
		"an unknown resource is empty": {server.Config(apiserver.Admin), "/apis/none.example/v1/things", http.StatusNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, body := get(t, test.config, test.path); got != test.want {
				t.Errorf("status %d, want %d: %s", got, test.want, body)
			}
		})
	}
}

func TestKubectlWritesAndReads(t *testing.T) {
	server := cluster.Start(t)
	server.Kubectl(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"note"},"data":{"a":"b"}}`, "apply", "-f", "-")
	if got := server.Kubectl(t, "", "get", "configmap", "note", "-o", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("data %q, want b", got)
	}
}

func TestKubeconfigCarriesTheUser(t *testing.T) {
	server := cluster.Start(t)
	for _, user := range []string{apiserver.Admin, apiserver.Guest} {
		content, err := os.ReadFile(server.Kubeconfig(user))
		if err != nil {
			t.Fatal(err)
		}
		if token := server.Config(user).BearerToken; !strings.Contains(string(content), token) {
			t.Errorf("kubeconfig of %s lacks its token", user)
		}
	}
}

// A stopped server leaves neither its directory nor its listener.
func TestStopLeavesNothing(t *testing.T) {
	path := os.Getenv(apiserver.BinaryEnv)
	if path == "" {
		t.Skip("needs the API server: run make test")
	}
	server, err := apiserver.New(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(server.Kubeconfig(apiserver.Admin))
	server.Stop()
	server.Stop()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s still there: %v", dir, err)
	}
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if connection, err := net.Dial("tcp", address.Host); err == nil {
		connection.Close()
		t.Errorf("%s still answers", address.Host)
	}
}

func TestNewFails(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no such server $1\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx    context.Context
		binary string
		want   string
	}{
		"no binary":                {t.Context(), filepath.Join(t.TempDir(), "none"), "start etcd"},
		"a binary that fails":      {t.Context(), broken, "no such server"},
		"a context that has ended": {canceled, broken, "start API server"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := apiserver.New(test.ctx, test.binary)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// What a killed test process left behind goes with the next start; what a
// living one uses stays.
func TestStartRemovesStaleDirectories(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Skip("needs a process that has ended:", err)
	}
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	stale := filepath.Join(root, "test-apiserver-"+strconv.Itoa(ended.Process.Pid)+"-1")
	living := filepath.Join(root, "test-apiserver-"+strconv.Itoa(os.Getpid())+"-1")
	for _, dir := range []string{stale, living} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := apiserver.New(t.Context(), filepath.Join(root, "none")); err == nil {
		t.Fatal("a server started from no binary")
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stale directory still there: %v", err)
	}
	if _, err := os.Stat(living); err != nil {
		t.Errorf("living directory: %v", err)
	}
}
