package openai

import (
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// What was unusual about a reply that is not an error.
const (
	// FlagNoDone: the stream ended after its finish_reason without [DONE].
	FlagNoDone = "no_done"
	// FlagNoFinish: the stream ended with [DONE] without a finish_reason.
	FlagNoFinish = "no_finish"
	// FlagBuffered: all token-bearing chunks came in one burst, or the reply to a
	// streaming request was one document: something on the way holds the stream
	// back, and the stamps say nothing about the server.
	FlagBuffered = "buffered"
	// FlagHeldOpen: the body did not end within a second of [DONE].
	FlagHeldOpen = "held_open"
)

// Reply is what came of one request. A zero time is one that was not reached.
type Reply struct {
	// Sent is when the request was handed over for sending; Connected when it
	// had a connection, Wrote when it was written, Header when the first byte of
	// the response came.
	Sent, Connected, Wrote, Header time.Time
	// Resolved, Dialed and Secured are the ends of DNS, TCP and TLS where the
	// request made a connection; they are zero where it found one.
	Resolved, Dialed, Secured time.Time
	// ReusedConn says that the connection had served an earlier request.
	ReusedConn bool
	// FirstToken and LastToken are the first and last token-bearing chunk,
	// FirstOutput the first that is not reasoning, Finish the finish_reason.
	FirstToken, FirstOutput, LastToken, Finish time.Time
	// EOF is the end of the body; Failed when the request failed.
	EOF, Failed time.Time

	// Gaps are those of consecutive token-bearing chunks; there is one less than
	// Chunks. GapTokens holds the tokens of the later chunk of each gap; it is
	// nil unless the server stated them for every chunk.
	Gaps      []time.Duration
	GapTokens []int
	Chunks    int
	// FirstTokens is the number of tokens of the first chunk, 0 where unknown.
	FirstTokens int

	// PromptTokens, OutputTokens and CachedTokens are the server's; -1 where it
	// stated none.
	PromptTokens, OutputTokens, CachedTokens int

	Status int
	// Protocol is the response's version of HTTP, such as HTTP/2.0.
	Protocol string
	// Bytes counts the body.
	Bytes        int64
	FinishReason string
	Flags        []string

	// Class is empty for success; Code and Message say more of an error, Body is
	// the start of a failed response.
	Class   record.ErrorClass
	Code    string
	Message string
	Body    string
}

// End is the end of the request as a user sees it: the last token or the finish
// reason, whichever is later; without a stream the end of the body, and when it
// failed that moment.
func (r *Reply) End() time.Time {
	switch {
	case r.Class != "" && !r.Failed.IsZero():
		return r.Failed
	case r.LastToken.IsZero() && r.Finish.IsZero():
		return r.EOF
	case r.Finish.After(r.LastToken):
		return r.Finish
	}
	return r.LastToken
}

// fail keeps the first error.
func (r *Reply) fail(at time.Time, class record.ErrorClass, code, message string) {
	if r.Class != "" {
		return
	}
	r.Failed, r.Class, r.Code, r.Message = at, class, code, message
}
