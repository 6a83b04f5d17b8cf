package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// phases stamps the phases of one request before its body. The transport calls
// some of the hooks from its own goroutines, even after a request is over.
type phases struct {
	now                       func() time.Time
	resolved, dialed, secured atomic.Pointer[time.Time]
	connected, wrote, header  atomic.Pointer[time.Time]
	reused, tlsFailed         atomic.Bool
}

func (p *phases) context(ctx context.Context) context.Context {
	stamp := func(at *atomic.Pointer[time.Time]) {
		now := p.now()
		at.Store(&now)
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			stamp(&p.connected)
			p.reused.Store(info.Reused)
		},
		WroteRequest:         func(httptrace.WroteRequestInfo) { stamp(&p.wrote) },
		GotFirstResponseByte: func() { stamp(&p.header) },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err == nil {
				stamp(&p.resolved)
			}
		},
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				stamp(&p.dialed)
			}
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				p.tlsFailed.Store(true)
				return
			}
			stamp(&p.secured)
		},
	})
}

func (p *phases) fill(reply *Reply) {
	for _, one := range []struct {
		from *atomic.Pointer[time.Time]
		to   *time.Time
	}{{&p.resolved, &reply.Resolved}, {&p.dialed, &reply.Dialed}, {&p.secured, &reply.Secured}, {&p.connected, &reply.Connected}, {&p.wrote, &reply.Wrote}, {&p.header, &reply.Header}} {
		if at := one.from.Load(); at != nil {
			*one.to = *at
		}
	}
	reply.ReusedConn = p.reused.Load()
	// A request that waits may be handed a connection that became free, while
	// the one it had begun to dial serves another.
	if reply.ReusedConn {
		reply.Resolved, reply.Dialed, reply.Secured = time.Time{}, time.Time{}, time.Time{}
	}
}

// path is how long each phase took; nil for one that there was not.
func (p *phases) path(start time.Time) record.PathPhases {
	previous := start
	next := func(at *atomic.Pointer[time.Time]) *float64 {
		now := at.Load()
		if now == nil {
			return nil
		}
		seconds := max(now.Sub(previous).Seconds(), 0)
		previous = *now
		return &seconds
	}
	path := record.PathPhases{DNS: next(&p.resolved), Connect: next(&p.dialed), TLS: next(&p.secured)}
	if wrote := p.wrote.Load(); wrote != nil {
		previous = *wrote
		path.Wait = next(&p.header)
	}
	return path
}

// classify files an error that came before the response header.
func classify(err error, l *limits, trace *phases) record.ErrorClass {
	if why := context.Cause(l.ctx); why != nil {
		return classifyBody(why)
	}
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &dns):
		return record.ErrorDNS
	case trace.tlsFailed.Load(), errors.As(err, &certificate), errors.As(err, &unknown), errors.As(err, &header):
		return record.ErrorTLS
	case strings.Contains(err.Error(), "malformed HTTP"):
		return record.ErrorProtocol
	}
	return record.ErrorConnect
}

// classifyBody files the end of a request by what ended it.
func classifyBody(why error) record.ErrorClass {
	switch {
	case errors.Is(why, errTotal):
		return record.ErrorTimeoutTotal
	case errors.Is(why, errHeader):
		return record.ErrorTimeoutHeader
	case errors.Is(why, errIdle):
		return record.ErrorTimeoutIdle
	case why != nil:
		return record.ErrorCancelled
	}
	return record.ErrorTruncated
}

func bodyMessage(err, why error) string {
	switch {
	case why != nil:
		return why.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended inside the body"
	}
	return failure.Clean(err.Error())
}
