package apiserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// BinaryEnv names the environment variable that holds the path of the binary
// which answers to `etcd`, `kube-apiserver` and `kubectl` as its first argument.
const BinaryEnv = "LAB_KUBERNETES"

const (
	// Admin is the user whom every request is allowed (group system:masters).
	Admin = "admin"
	// Guest is a user who is authenticated and, until a test binds a role to
	// it, allowed nothing but discovery.
	Guest = "guest"
)

// startTimeout bounds one attempt at starting; the servers are ready within a
// few seconds, on a busy machine within a few tens of them.
const startTimeout = 2 * time.Minute

// attempts is how often a start is tried: a port found free can be taken by
// another process before the server binds it.
const attempts = 3

// Server is one running pair of etcd and kube-apiserver. Make one with [New],
// [Start] or [Shared.Start].
type Server struct {
	binary string
	dir    string
	url    string
	ca     []byte
	tokens map[string]string

	etcd, api *process
}

// New starts the servers of the binary at the path binary and returns when the
// API server is ready. The caller must call Stop. The context bounds the start
// alone: a server outlives it.
func New(ctx context.Context, binary string) (*Server, error) {
	var failures []error
	for range attempts {
		server, err := start(ctx, binary)
		if err == nil {
			return server, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil || !errors.Is(err, errExited) {
			break
		}
	}
	return nil, fmt.Errorf("start API server: %w", errors.Join(failures...))
}

func start(ctx context.Context, binary string) (_ *Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	removeStale(os.TempDir())
	dir, err := os.MkdirTemp("", dirPrefix+fmt.Sprint(os.Getpid())+"-")
	if err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	server := &Server{binary: binary, dir: dir, tokens: map[string]string{Admin: token(), Guest: token()}}
	defer func() {
		if err != nil {
			server.Stop()
		}
	}()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	server.url = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	if server.etcd, err = launch(dir, binary, etcdArgs(dir, etcdURL, peerURL)); err != nil {
		return nil, err
	}
	if err := server.writeFiles(); err != nil {
		return nil, err
	}
	if server.api, err = launch(dir, binary, apiArgs(dir, etcdURL, ports[2])); err != nil {
		return nil, err
	}
	if err := server.waitReady(ctx); err != nil {
		return nil, err
	}
	return server, nil
}

// etcdArgs are etcd's arguments. It keeps nothing safe across a crash of the
// machine, which a test does not need and which costs a disk flush per write.
func etcdArgs(dir, client, peer string) []string {
	return []string{
		"etcd",
		"--name=test",
		"--data-dir=" + filepath.Join(dir, "etcd"),
		"--unsafe-no-fsync",
		"--log-level=error",
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=test=" + peer,
	}
}

// apiArgs are kube-apiserver's arguments. The ServiceAccount admission plugin
// is off because it refuses pods until a controller manager, absent here, has
// made the namespace's default account.
func apiArgs(dir, etcd string, port int) []string {
	file := func(name string) string { return filepath.Join(dir, name) }
	return []string{
		"kube-apiserver",
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + file(servingCert),
		"--tls-private-key-file=" + file(servingKey),
		"--token-auth-file=" + file(tokenFile),
		"--service-account-key-file=" + file(accountKey),
		"--service-account-signing-key-file=" + file(accountKey),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
		"--profiling=false",
		"--v=0",
	}
}

// writeFiles writes the certificates, the token file and a kubeconfig per user.
func (s *Server) writeFiles() error {
	ca, err := writeCerts(s.dir)
	if err != nil {
		return err
	}
	s.ca = ca
	groups := map[string]string{Admin: `"system:masters"`}
	var rows strings.Builder
	for _, user := range slices.Sorted(maps.Keys(s.tokens)) {
		fmt.Fprintf(&rows, "%s,%s,%s,%s\n", s.tokens[user], user, user, groups[user])
		if err := os.WriteFile(s.Kubeconfig(user), s.kubeconfig(user), 0o600); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, tokenFile), []byte(rows.String()), 0o600); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// Config returns a new client configuration of user, [Admin] or [Guest]. It
// has no rate limit of its own, so that tests do not wait for one.
func (s *Server) Config(user string) *rest.Config {
	return &rest.Config{
		Host:            s.url,
		BearerToken:     s.tokens[user],
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
		QPS:             -1,
	}
}

// Kubeconfig returns the path of a kubeconfig file of user, [Admin] or [Guest].
// The file goes when the server stops.
func (s *Server) Kubeconfig(user string) string {
	return filepath.Join(s.dir, user+".kubeconfig")
}

// URL returns the API server's address.
func (s *Server) URL() string { return s.url }

// Stop ends both servers and removes their directory. It may be called again.
func (s *Server) Stop() {
	s.api.stop()
	s.etcd.stop()
	os.RemoveAll(s.dir)
}

func token() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}
