package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	// keptBody is how much of a failed response a record holds.
	keptBody = 2 << 10
	// maxReply bounds a reply that is not a stream.
	maxReply = 64 << 20
	// afterDone is how long the end of a body may take after [DONE]. The answer
	// is complete by then; the wait only lets the connection be used again.
	afterDone = time.Second
)

// Client sends requests to one server.
type Client struct {
	// HTTP sends. Use NewHTTP: another client may retry, follow redirects or
	// compress.
	HTTP *http.Client
	// URL is the server's base, with or without /v1.
	URL string
	// Key is the API key; empty sends none.
	Key string
	// Headers are sent with every request; Host replaces that of the URL.
	Headers map[string]string
	// Timeout limits a request from send to end. Idle limits the wait for the
	// header and between two reads; 0 leaves that to Timeout.
	Timeout, Idle time.Duration
	// Now is the clock of every stamp.
	Now func() time.Time
}

// Path returns the path of an API below the server's base.
func Path(api string) string {
	if api == record.APIChat {
		return "chat/completions"
	}
	return "completions"
}

func (c *Client) endpoint(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(c.URL, "/"), "/v1") + "/v1/" + path
}

func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	return c.requestTo(ctx, method, c.endpoint(path), body)
}

func (c *Client) requestTo(ctx context.Context, method, url string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, failure.New(failure.Usage, "", "make request: %w", err)
	}
	request.Header.Set("User-Agent", "kubectl-inference")
	for name, value := range c.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			request.Host = value
			continue
		}
		request.Header.Set(name, value)
	}
	request.Header.Set("Accept-Encoding", "identity")
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.Key)
	}
	return request, nil
}

// Do sends one request body and reads its reply to the end. It always returns a
// Reply: an error is its Class. onToken, which may be nil, is called when the
// first token-bearing chunk is there. The request is never repeated, except by
// the transport where a kept connection had been closed before anything was
// written to it.
func (c *Client) Do(ctx context.Context, api string, body []byte, onToken func(time.Time)) *Reply {
	reply := &Reply{PromptTokens: -1, OutputTokens: -1, CachedTokens: -1}
	limits := newLimits(ctx, c.Timeout, c.Idle)
	defer limits.stop()
	trace := &phases{now: c.Now}
	request, err := c.request(trace.context(limits.ctx), http.MethodPost, Path(api), body)
	if err != nil {
		reply.Sent = c.Now()
		reply.fail(reply.Sent, record.ErrorProtocol, "", err.Error())
		return reply
	}
	reply.Sent = c.Now()
	response, err := c.HTTP.Do(request)
	trace.fill(reply)
	if err != nil {
		reply.fail(c.Now(), classify(err, limits, trace), "", bodyMessage(cause(err), context.Cause(limits.ctx)))
		return reply
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	limits.headerCame()
	reply.Status, reply.Protocol = response.StatusCode, response.Proto
	reader := &replyReader{client: c, reply: reply, limits: limits, body: response.Body, onToken: onToken}
	reader.read(response)
	return reply
}

// cause is the error without the method and URL that net/http puts before it.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// limits ends a request that takes too long, and remembers why.
type limits struct {
	ctx         context.Context
	cancel      context.CancelCauseFunc
	total, wait *time.Timer
	idle        time.Duration

	mu     sync.Mutex
	reason error // what ends the request when wait runs out
}

var (
	errTotal  = errors.New("the request's time ran out")
	errHeader = errors.New("no response header came in time")
	errIdle   = errors.New("the stream stood still for too long")
	errHeld   = errors.New("the body did not end after [DONE]")
)

func newLimits(ctx context.Context, total, idle time.Duration) *limits {
	l := &limits{idle: idle, reason: errHeader}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.total = time.AfterFunc(total, func() { l.cancel(errTotal) })
	if idle > 0 {
		l.wait = time.AfterFunc(idle, l.expire)
	}
	return l
}

func (l *limits) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(l.reason)
}

func (l *limits) headerCame() {
	l.mu.Lock()
	l.reason = errIdle
	l.mu.Unlock()
	l.readCame()
}

// readCame starts the wait for the next read.
func (l *limits) readCame() {
	if l.wait != nil {
		l.wait.Reset(l.idle)
	}
}

// done starts the wait for the end of a body whose answer is complete.
func (l *limits) done() {
	l.mu.Lock()
	l.reason = errHeld
	l.mu.Unlock()
	l.idle = afterDone
	if l.wait == nil {
		l.wait = time.AfterFunc(afterDone, l.expire)
	} else {
		l.wait.Reset(afterDone)
	}
}

func (l *limits) stop() {
	l.total.Stop()
	if l.wait != nil {
		l.wait.Stop()
	}
	l.cancel(nil)
}

// replyReader reads one response into its Reply.
type replyReader struct {
	client  *Client
	reply   *Reply
	limits  *limits
	body    io.Reader
	onToken func(time.Time)

	kept   []byte // the first keptBody bytes
	parser eventParser
	chunk  chunk

	now        time.Time // when the current read came
	readTokens int       // token-bearing chunks in the current read
	reads      int       // reads with token-bearing chunks
	sawDone    bool
	tokensSeen int  // completion tokens by continuous usage or ids
	counted    bool // every chunk so far stated its tokens
	byID       bool // by token ids, so tokensSeen is the output's length
}

func (r *replyReader) read(response *http.Response) {
	r.counted = true
	stream := false
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err == nil {
		stream = media == "text/event-stream"
	}
	encoding := response.Header.Get("Content-Encoding")
	switch {
	case r.reply.Status != http.StatusOK:
		r.document(false)
		var c chunk
		message := http.StatusText(r.reply.Status)
		if parseChunk(bytes.TrimSpace(r.kept), &c) == nil && c.fault != nil && c.fault.message != "" {
			message = c.fault.message
		}
		// The status decides, whatever became of the body.
		r.reply.Class, r.reply.Failed = "", time.Time{}
		r.reply.fail(r.now, record.StatusClass(r.reply.Status), "", failure.Clean(message))
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		r.now = r.client.Now()
		r.reply.fail(r.now, record.ErrorProtocol, "", fmt.Sprintf("the response is compressed (%s), so its chunks have no times", failure.Clean(encoding)))
	case stream:
		r.stream()
	default:
		r.document(true)
	}
	if r.reply.Class != "" {
		r.reply.Body = strings.ToValidUTF8(string(r.kept), "\uFFFD")
	}
}

// keep holds the start of the body for the record of a failed request.
func (r *replyReader) keep(read []byte) {
	r.reply.Bytes += int64(len(read))
	if room := keptBody - len(r.kept); room > 0 {
		r.kept = append(r.kept, read[:min(room, len(read))]...)
	}
}

// document reads a reply that is one JSON document.
func (r *replyReader) document(parse bool) {
	body, err := io.ReadAll(io.LimitReader(r.body, maxReply))
	r.now = r.client.Now()
	r.keep(body)
	if err != nil {
		r.broken(err)
		return
	}
	r.reply.EOF = r.now
	if !parse {
		return
	}
	if err := parseChunk(body, &r.chunk); err != nil {
		r.reply.fail(r.now, record.ErrorProtocol, "", "the reply is "+err.Error())
		return
	}
	if r.chunk.fault != nil {
		r.reply.fail(r.now, record.ErrorInBand, r.chunk.fault.code, failure.Clean(r.chunk.fault.message))
		return
	}
	r.usage()
	if r.chunk.finish == nil {
		r.reply.fail(r.now, record.ErrorProtocol, "", "the reply has no choice with a finish_reason")
		return
	}
	r.reply.FinishReason = string(unquote(r.chunk.finish))
}

// broken files an error of reading the body.
func (r *replyReader) broken(err error) {
	why := context.Cause(r.limits.ctx)
	switch {
	case errors.Is(why, errHeld):
		r.reply.Flags = append(r.reply.Flags, FlagHeldOpen)
	case r.sawDone:
		// The answer was complete; only the end of the body is missing.
	default:
		r.reply.fail(r.now, classifyBody(why), "", bodyMessage(err, why))
	}
}
