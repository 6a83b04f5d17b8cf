package apiserver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Start starts a server that the test has to itself and that ends with it. It
// skips the test where [BinaryEnv] is unset.
func Start(t testing.TB) *Server {
	t.Helper()
	server, err := New(t.Context(), binary(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Shared is one server for all tests of a package, started by the first that
// asks. The zero value is ready for use.
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the package's tests, stops the server if one was started, and
// returns the exit code, for TestMain.
func (s *Shared) Main(m *testing.M) int {
	defer func() {
		if s.server != nil {
			s.server.Stop()
		}
	}()
	return m.Run()
}

// Start returns the server. It skips the test where [BinaryEnv] is unset.
func (s *Shared) Start(t testing.TB) *Server {
	t.Helper()
	path := binary(t)
	s.once.Do(func() { s.server, s.err = New(t.Context(), path) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.server
}

func binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(BinaryEnv)
	if path == "" {
		t.Skip("needs the API server: run make test")
	}
	return path
}

// Kubectl runs kubectl against the server as [Admin], with stdin as its
// standard input, and returns what it printed. It fails the test when kubectl
// fails.
func (s *Server) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), s.binary, append([]string{"kubectl"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(Admin), "HOME="+s.dir)
	command.Stdin = strings.NewReader(stdin)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatal(fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String()))
	}
	return stdout.String()
}
