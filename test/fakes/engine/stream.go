package engine

import (
	"net/http"
)

// stream answers with server-sent events, one for each token. Events that are due together leave in one write.
func (a *answer) stream(w http.ResponseWriter, r *http.Request) (complete bool) {
	s := newSender(a, w)
	for open := len(a.jobs); open > 0; {
		if !a.wait(r) {
			s.abandon()
			return false
		}
		for i, j := range a.jobs {
			if j.produced.Load() == failed {
				s.event(errorEvent("EngineCore refused the request"))
				s.done()
				return false
			}
			c := &s.choices[i]
			if c.ended {
				continue
			}
			produced := int(j.produced.Load())
			last := produced == j.request.Output
			if produced-c.sent < a.fault.chunkSize() && !last {
				continue
			}
			if broken := a.sendTokens(s, i, produced); broken {
				a.fault.breakStream(s, r, a.engine.done)
				return false
			}
			if last {
				c.ended = true
				open--
			}
		}
		if s.flush() != nil {
			return false
		}
	}
	return a.finish(s)
}

// sendTokens writes the new tokens of a choice. It returns true where a fault wants the stream to break.
func (a *answer) sendTokens(s *sender, choice, produced int) (broken bool) {
	c := &s.choices[choice]
	if c.sent == 0 {
		s.greet(a, choice)
	}
	for c.sent < produced {
		if a.fault.stops(c.sent) {
			return true
		}
		n := min(a.fault.chunkSize(), produced-c.sent)
		if limit := a.fault.stopsAt(); limit > 0 {
			n = min(n, limit-c.sent)
		}
		// A chunk is either reasoning or content.
		thinking := c.sent < a.reasoning
		if thinking {
			n = min(n, a.reasoning-c.sent)
		}
		s.tokens(a, choice, n, thinking)
		c.sent += n
	}
	return a.fault.stops(c.sent)
}

// finish writes what follows the last token.
func (a *answer) finish(s *sender) bool {
	if a.fault.SplitFinish {
		for i := range a.jobs {
			s.finishChoice(a, i)
		}
	}
	if a.request.StreamOptions.IncludeUsage && !a.fault.NoUsage && !a.fault.JoinUsage {
		s.usage(a)
	}
	if !a.fault.NoDone {
		s.done()
	}
	return s.flush() == nil
}

// sender writes the events of one stream.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
	fault   Fault
	choices []sendState
	gone    error
}

type sendState struct {
	content, reasoning []byte // the beginning of a chunk
	sent               int    // tokens
	ended              bool
}

func newSender(a *answer, w http.ResponseWriter) *sender {
	s := &sender{w: w, control: http.NewResponseController(w), fault: a.fault, buffer: make([]byte, 0, 1024)}
	for i := range a.jobs {
		content, reasoning := a.dialect.open(a, i)
		s.choices = append(s.choices, sendState{content: content, reasoning: reasoning})
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	// As a front end of several replicas would be told, do not gather events.
	h.Set("X-Accel-Buffering", "no")
	return s
}

func (s *sender) greet(a *answer, choice int) {
	if b := a.dialect.greet(nil, a, choice); len(b) > 0 {
		s.event(b)
	}
}

// tokens writes one chunk of n tokens.
func (s *sender) tokens(a *answer, choice, n int, thinking bool) {
	j, c := a.jobs[choice], &s.choices[choice]
	reason := ""
	if c.sent+n == j.request.Output && !s.fault.SplitFinish && !s.fault.NoFinish {
		reason = j.reason
	}
	s.begin()
	if thinking {
		s.buffer = append(s.buffer, c.reasoning...)
	} else {
		s.buffer = append(s.buffer, c.content...)
	}
	s.buffer = j.text(s.buffer, c.sent, c.sent+n)
	s.buffer = a.dialect.close(s.buffer, reason, s.running(a, choice, c.sent+n, reason != ""))
	s.end()
}

// running is the usage on a chunk, if the request asked for it or a fault puts the last one there.
func (s *sender) running(a *answer, choice, produced int, last bool) *usage {
	o := a.request.StreamOptions
	switch {
	case s.fault.NoUsage:
		return nil
	case s.fault.JoinUsage && last && o.IncludeUsage:
		u := a.usage()
		return &u
	case o.IncludeUsage && o.ContinuousUsageStats:
		prompt := len(a.jobs[choice].request.Prompt)
		return &usage{PromptTokens: prompt, CompletionTokens: produced, TotalTokens: prompt + produced}
	default:
		return nil
	}
}

// finishChoice writes an empty chunk with the finish reason.
func (s *sender) finishChoice(a *answer, choice int) {
	s.begin()
	s.buffer = append(s.buffer, s.choices[choice].content...)
	s.buffer = a.dialect.close(s.buffer, a.jobs[choice].reason, nil)
	s.end()
}

// usage writes the last chunk, which has no choices.
func (s *sender) usage(a *answer) {
	s.begin()
	s.buffer = append(append(s.buffer, preamble(a)...), `,"choices":[],"usage":`...)
	s.buffer = append(appendUsage(s.buffer, a.usage()), '}')
	s.end()
}

func (s *sender) done() { s.event([]byte("[DONE]")) }

func (s *sender) event(data []byte) {
	s.begin()
	s.buffer = append(s.buffer, data...)
	s.end()
}

// begin starts an event, in the form that the fault wants.
func (s *sender) begin() {
	if s.fault.Comments {
		s.buffer = append(append(s.buffer, ": keep-alive"...), s.lineEnd()...)
		s.buffer = append(s.buffer, s.lineEnd()...)
	}
	if s.fault.EventFields {
		s.buffer = append(append(s.buffer, "event: message"...), s.lineEnd()...)
		s.buffer = append(append(s.buffer, "id: 7"...), s.lineEnd()...)
	}
	s.buffer = append(s.buffer, "data:"...)
	if !s.fault.NoSpace {
		s.buffer = append(s.buffer, ' ')
	}
}

func (s *sender) end() {
	s.buffer = append(append(s.buffer, s.lineEnd()...), s.lineEnd()...)
}

func (s *sender) lineEnd() string {
	if s.fault.CRLF {
		return "\r\n"
	}
	return "\n"
}

// flush sends what is due. An error says that the client has gone.
func (s *sender) flush() error {
	if s.gone != nil || len(s.buffer) == 0 {
		return s.gone
	}
	if s.fault.SplitWrites && len(s.buffer) > 3 {
		third := len(s.buffer) / 3
		s.write(s.buffer[:third])
		s.write(s.buffer[third : 2*third])
		s.write(s.buffer[2*third:])
	} else {
		s.write(s.buffer)
	}
	s.buffer = s.buffer[:0]
	return s.gone
}

func (s *sender) write(b []byte) {
	if s.gone != nil {
		return
	}
	if _, s.gone = s.w.Write(b); s.gone == nil {
		s.gone = s.control.Flush()
	}
}

// abandon breaks off a stream that cannot be completed, because the engine was closed: the connection is cut, so that
// the client does not take the end of the body for the end of the answer.
func (s *sender) abandon() { cut(s.w, false) }
