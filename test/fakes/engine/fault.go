package engine

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Fault is one way in which an engine, or what stands before it, misbehaves. Several may be combined.
type Fault struct {
	// Every picks each n-th request, the first included; 0 means all.
	Every int `json:"every,omitempty"`
	// Times ends the fault after that many requests; 0 means never.
	Times int `json:"times,omitempty"`

	// Status answers with this code and an error body before anything else.
	Status int `json:"status,omitempty"`
	// RetryAfter goes with Status, in seconds.
	RetryAfter int `json:"retry_after,omitempty"`
	// NeverAnswer holds the request without a response until the client leaves.
	NeverAnswer bool `json:"never_answer,omitempty"`

	// ErrorAfter, CutAfter and StallAfter break an answer after n tokens: with an error event within the stream (then
	// [DONE]), by closing the connection, or by silence. An answer in one piece gets status 500, or is cut, or stalls.
	ErrorAfter int `json:"error_after,omitempty"`
	CutAfter   int `json:"cut_after,omitempty"`
	StallAfter int `json:"stall_after,omitempty"`
	// Reset makes CutAfter a TCP reset instead of an orderly close.
	Reset bool `json:"reset,omitempty"`

	// CRLF, Comments, NoSpace, EventFields and SplitWrites are legal forms of server-sent events that parsers get
	// wrong: carriage returns, comment lines, "data:" without the space, event and id fields, an event in three writes.
	CRLF        bool `json:"crlf,omitempty"`
	Comments    bool `json:"comments,omitempty"`
	NoSpace     bool `json:"no_space,omitempty"`
	EventFields bool `json:"event_fields,omitempty"`
	SplitWrites bool `json:"split_writes,omitempty"`

	// TokensPerChunk puts n tokens into each chunk, as speculative decoding does.
	TokensPerChunk int `json:"tokens_per_chunk,omitempty"`
	// ReasoningTokens sends the first n tokens of a chat answer as reasoning; OldReasoning names the field of the delta
	// reasoning_content, as vLLM did at first.
	ReasoningTokens int  `json:"reasoning_tokens,omitempty"`
	OldReasoning    bool `json:"old_reasoning,omitempty"`
	// SplitFinish sends the finish reason in an empty chunk of its own after the last token; NoFinish not at all.
	SplitFinish bool `json:"split_finish,omitempty"`
	NoFinish    bool `json:"no_finish,omitempty"`
	// NoUsage leaves usage out; JoinUsage puts it on the last chunk that has choices.
	NoUsage   bool `json:"no_usage,omitempty"`
	JoinUsage bool `json:"join_usage,omitempty"`
	// NoDone ends the stream without [DONE].
	NoDone bool `json:"no_done,omitempty"`
}

// faults is the list that applies to all requests.
type faults struct {
	mu   sync.Mutex
	list []activeFault
}

type activeFault struct {
	Fault
	requests, hits int
}

// SetFaults replaces the faults. A request suffers the first that picks it.
func (e *Engine) SetFaults(list ...Fault) {
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	e.faults.list = nil
	for _, f := range list {
		e.faults.list = append(e.faults.list, activeFault{Fault: f})
	}
}

// FaultHeader carries a fault for one request as JSON, if the engine is open to administration.
const FaultHeader = "X-Engine-Fault"

// fault returns what the request has to suffer.
func (e *Engine) fault(r *http.Request) (Fault, *apiError) {
	if text := r.Header.Get(FaultHeader); text != "" && e.config.Admin {
		var f Fault
		if err := strict(strings.NewReader(text), &f); err != nil {
			return Fault{}, badRequest(FaultHeader, "parse fault header: "+err.Error())
		}
		return f, nil
	}
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	for i := range e.faults.list {
		f := &e.faults.list[i]
		if f.Times > 0 && f.hits >= f.Times {
			continue
		}
		f.requests++
		if f.Every > 1 && f.requests%f.Every != 1 {
			continue
		}
		f.hits++
		return f.Fault, nil
	}
	return Fault{}, nil
}

// before applies what happens before the engine sees the request, and reports whether that was all.
func (f Fault) before(w http.ResponseWriter, r *http.Request, closed <-chan struct{}) bool {
	switch {
	case f.NeverAnswer:
		hold(r, closed)
		cut(w, false)
	case f.Status != 0:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		writeError(w, &apiError{status: f.Status, message: "injected fault: " + http.StatusText(f.Status)})
	default:
		return false
	}
	return true
}

// hold waits until the client or the engine has gone.
func hold(r *http.Request, closed <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-closed:
	}
}

func (f Fault) chunkSize() int { return max(1, f.TokensPerChunk) }

// stopsAt is the number of tokens after which the answer breaks, 0 for never.
func (f Fault) stopsAt() int {
	at := 0
	for _, n := range []int{f.ErrorAfter, f.CutAfter, f.StallAfter} {
		if n > 0 && (at == 0 || n < at) {
			at = n
		}
	}
	return at
}

func (f Fault) stops(sent int) bool { return f.stopsAt() > 0 && sent >= f.stopsAt() }

// breakStream ends a stream as the fault wants.
func (f Fault) breakStream(s *sender, r *http.Request, closed <-chan struct{}) {
	at := f.stopsAt()
	if at == f.ErrorAfter {
		s.event(errorEvent("EngineCore encountered an issue. See stack trace for the root cause."))
		if !f.NoDone {
			s.done()
		}
	}
	if s.flush() != nil {
		return
	}
	switch at {
	case f.CutAfter:
		cut(s.w, f.Reset)
	case f.StallAfter:
		hold(r, closed)
	}
}

// breakPlain ends an answer in one piece as the fault wants.
func (f Fault) breakPlain(w http.ResponseWriter, r *http.Request, closed <-chan struct{}) {
	switch f.stopsAt() {
	case f.CutAfter:
		cut(w, f.Reset)
	case f.StallAfter:
		hold(r, closed)
	default:
		writeError(w, &apiError{
			status:  http.StatusInternalServerError,
			message: "EngineCore encountered an issue. See stack trace for the root cause.",
		})
	}
}

// errorEvent is an error within a stream that began with status 200.
func errorEvent(message string) []byte {
	return marshal(newErrorBody(http.StatusInternalServerError, message, ""))
}

// cut closes the connection of a response without ending it.
func cut(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		// Not a connection of its own, such as a recorder in a test: there is nothing to cut.
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		// Dropping unsent data on close is what makes it a reset.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
