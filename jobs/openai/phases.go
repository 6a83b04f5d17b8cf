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
	now                      func() time.Time
	connected, wrote, header atomic.Pointer[time.Time]
	reused, tlsFailed        atomic.Bool
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
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				p.tlsFailed.Store(true)
			}
		},
	})
}

func (p *phases) fill(reply *Reply) {
	for _, one := range []struct {
		from *atomic.Pointer[time.Time]
		to   *time.Time
	}{{&p.connected, &reply.Connected}, {&p.wrote, &reply.Wrote}, {&p.header, &reply.Header}} {
		if at := one.from.Load(); at != nil {
			*one.to = *at
		}
	}
	reply.ReusedConn = p.reused.Load()
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
