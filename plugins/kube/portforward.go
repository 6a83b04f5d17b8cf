package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forwards are port-forwards to pods, one for each port that was asked for,
// open until Close.
type Forwards struct {
	config *rest.Config
	client kubernetes.Interface

	mutex sync.Mutex
	open  map[string]*forward
}

type forward struct {
	address string
	err     error
	cancel  context.CancelFunc
	ended   chan struct{}
}

// Forwards makes a set without any.
func (f *Factory) Forwards() (*Forwards, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Forwards{config: config, client: client, open: map[string]*forward{}}, nil
}

// Dial connects to a port of a service by way of one of its ready pods, or to
// that of one pod where pod is not "".
func (f *Forwards) Dial(ctx context.Context, namespace, service, pod, port string) (net.Conn, error) {
	f.mutex.Lock()
	key := namespace + "/" + service + "/" + pod + ":" + port
	through := f.open[key]
	if through == nil {
		through = f.start(ctx, namespace, service, pod, port)
		f.open[key] = through
	}
	f.mutex.Unlock()
	if through.err != nil {
		return nil, through.err
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", through.address)
}

// Close ends all of them and waits until they have ended.
func (f *Forwards) Close() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for key, through := range f.open {
		if through.cancel != nil {
			through.cancel()
			<-through.ended
		}
		delete(f.open, key)
	}
}

func (f *Forwards) start(ctx context.Context, namespace, service, pod, port string) *forward {
	backend, err := f.backend(ctx, namespace, service, pod, port)
	if err != nil {
		return &forward{err: err}
	}
	address := f.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(backend.pod).SubResource("portforward").URL()
	dialer, err := f.dialer(address)
	if err != nil {
		return &forward{err: err}
	}
	// It outlives the request that it was made for: others use it too.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(running, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", backend.port)}, ready, io.Discard, io.Discard)
	if err != nil {
		cancel()
		return &forward{err: fmt.Errorf("forward a port of pod %s in %s: %w", backend.pod, namespace, err)}
	}
	through := &forward{cancel: cancel, ended: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		defer close(through.ended)
		failed <- forwarder.ForwardPorts()
	}()
	select {
	case <-ready:
	case err = <-failed:
		err = errors.Join(err, errors.New("it ended at once"))
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		var ports []portforward.ForwardedPort
		if ports, err = forwarder.GetPorts(); err == nil && len(ports) == 1 {
			through.address = fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
			return through
		}
	}
	cancel()
	return &forward{err: forwardError(err, namespace, backend.pod), cancel: cancel, ended: through.ended}
}

// dialer tunnels through a websocket, and through SPDY where a server or a
// proxy in between knows no websockets.
func (f *Forwards) dialer(address *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return nil, err
	}
	older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
	newer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, f.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
