package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is an engine that listens on a loopback port of its own.
type Server struct {
	*Engine
	// URL is the base address, without a slash at its end.
	URL string

	http   *http.Server
	served chan error
}

// Start runs an engine on a free loopback port.
func Start(ctx context.Context, c Config) (*Server, error) {
	e, err := New(c)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start engine: %w", err), e.Close())
	}
	s := &Server{
		Engine: e,
		URL:    "http://" + l.Addr().String(),
		http:   &http.Server{Handler: e, ReadHeaderTimeout: 30 * time.Second},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.http.Serve(l) }()
	return s, nil
}

// Close stops the engine and the server, and breaks off what is being answered.
func (s *Server) Close() error {
	err := errors.Join(s.Engine.Close(), s.http.Close())
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
