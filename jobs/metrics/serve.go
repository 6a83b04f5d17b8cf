package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/push"
)

// pushTime bounds a push: the work is done, and its Job is to end.
const pushTime = 10 * time.Second

// Serve answers /metrics at address until ctx ends. It returns once it listens.
func (s *Sync) Serve(ctx context.Context, address string) (net.Addr, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: pushTime}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return listener.Addr(), nil
}

// Push sends the metrics to a Pushgateway, grouped by what was synced, so that a
// later run of the same takes the place of an earlier one.
func (s *Sync) Push(ctx context.Context, gateway, job, repo string, worker int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pushTime)
	defer cancel()
	err := push.New(gateway, job).Gatherer(s.registry).Grouping("model", repo).Grouping("worker", strconv.Itoa(worker)).PushContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", pushTime)
	}
	if err != nil {
		return fmt.Errorf("push metrics: %w", err)
	}
	return nil
}
