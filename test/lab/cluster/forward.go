package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// forward passes connections to socket, which may belong to another network
// namespace, on to target in this one. It returns at once and goes on until ctx
// ends.
func forward(ctx context.Context, socket *os.File, target string, problem func(error)) error {
	listener, err := net.FileListener(socket)
	_ = socket.Close() // the listener has its own copy
	if err != nil {
		return fmt.Errorf("forward to %s: %w", target, err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				problem(fmt.Errorf("forward to %s: %w", target, err))
				continue
			}
			go func() {
				if err := relay(ctx, conn, target); err != nil {
					problem(fmt.Errorf("forward to %s: %w", target, err))
				}
			}()
		}
	}()
	return nil
}

// relay copies both ways until both have ended. The end of one is passed on, as
// the other may still have much to say.
func relay(ctx context.Context, outside net.Conn, target string) error {
	defer outside.Close()
	inside, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	defer inside.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{inside, outside}, {outside, inside}} {
		both.Go(func() {
			// Either side may hang up at any time; that is no error of ours.
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	both.Wait()
	return nil
}
