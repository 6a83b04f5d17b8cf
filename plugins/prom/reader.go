package prom

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// The ways to a server.
const (
	viaProxy   = "proxy"
	viaForward = "port-forward"
	viaDirect  = "direct"
)

// Reader asks the servers of triggers.
type Reader struct {
	// Proxy is a client of the API server and APIServer its base URL: services
	// of the cluster are reached through its proxy. Without it, all servers are
	// asked directly: that is how it is inside a cluster.
	Proxy     *http.Client
	APIServer string
	// Forward connects to a port of a service, or of one of its pods, through a
	// port-forward: for requests that the proxy would change. Without it these
	// are made directly.
	Forward func(ctx context.Context, namespace, service, pod, port string) (net.Conn, error)
	// Home is KEDA's namespace, in which it looks up bare names; "" where that
	// is unknown.
	Home    string
	Timeout time.Duration
}

// patience is how long KEDA waits for an answer unless it is told otherwise
// (KEDA_HTTP_DEFAULT_TIMEOUT).
const patience = 3 * time.Second

// Result is a trigger's value and how it was come by.
type Result struct {
	Value float64
	// Failure says why the server's answer is no value to KEDA, Empty that a 0
	// stands in for one.
	Failure keda.ReadingFailure
	Empty   bool
	// Via is "proxy", "port-forward" or "direct".
	Via string
	// Note says what is different from KEDA's own request, or odd about it.
	Note string
}

// Read asks for the trigger's value at a moment, by the rules of KEDA's
// version. Via is filled in with an error too.
func (r Reader) Read(ctx context.Context, source Source, version keda.Version, at time.Time) (Result, error) {
	timeout := r.Timeout
	if source.Timeout > 0 {
		timeout = source.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	answer, err := r.Ask(ctx, source, "/api/v1/query", source.question(at))
	result := Result{Via: answer.Via, Note: source.Note}
	if err != nil {
		return result, err
	}
	if took := time.Since(started); source.Timeout == 0 && took > patience && result.Note == "" {
		result.Note = fmt.Sprintf("it took %.1f s to answer: KEDA gives up after %g s unless it is told otherwise", took.Seconds(), patience.Seconds())
	}
	reading := keda.ReadPrometheus(version, answer.Status, answer.Body, source.EmptyIsZero)
	result.Failure, result.Empty = reading.Failure, reading.Empty
	if reading.Failure != "" {
		return result, errors.New(reasonOf(reading.Failure, answer, source))
	}
	result.Value = reading.Value
	return result, nil
}

func reasonOf(failure keda.ReadingFailure, answer Answer, source Source) string {
	switch failure {
	case keda.QueryRefused:
		text := fmt.Sprintf("%s answers with status %d", source.Address.Host, answer.Status)
		if source.Note != "" {
			text += " (" + source.Note + ")"
		}
		return text
	case keda.QueryEmpty:
		return "the result is empty, and ignoreNullValues is off"
	case keda.QuerySeveral:
		return "the result has more than one series: KEDA refuses it"
	case keda.QueryNoNumber:
		return "the value is no number, and ignoreNullValues is off"
	}
	return source.Address.Host + " does not answer as Prometheus does"
}

// withoutURL drops the URL of a client's error: parameters may be credentials.
func withoutURL(err error) error {
	var address *url.Error
	for errors.As(err, &address) {
		err = address.Err
	}
	return err
}
