package apiserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// waitReady returns when the API server says that it is ready, or when one of
// the servers has ended, or when the context has.
func (s *Server) waitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.Config(Admin))
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	defer client.CloseIdleConnections()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !s.ready(ctx, client) {
		select {
		case <-s.etcd.exited:
			return s.etcd.failed()
		case <-s.api.exited:
			return s.api.failed()
		case <-ctx.Done():
			return fmt.Errorf("wait for API server: %w: %s", ctx.Err(), s.api.tail())
		case <-poll.C:
		}
	}
	return nil
}

func (s *Server) ready(ctx context.Context, client *http.Client) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// kubeconfig renders the kubeconfig of user.
func (s *Server) kubeconfig(user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    token: %s
contexts:
- name: test
  context:
    cluster: test
    user: %s
current-context: test
`, s.url, base64.StdEncoding.EncodeToString(s.ca), user, s.tokens[user], user)
}
