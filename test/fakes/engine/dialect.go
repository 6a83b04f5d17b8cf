package engine

import "strconv"

// dialect is the wire form of one of the two APIs.
type dialect interface {
	// prefix of the request id.
	prefix() string
	// object is the name of a chunk.
	object() string
	// open returns the beginning of the chunks of a choice up to its text, for content and for reasoning.
	open(a *answer, choice int) (content, reasoning []byte)
	// close appends the rest of a chunk after its text. An empty reason means that the choice goes on.
	close(b []byte, reason string, u *usage) []byte
	// greet appends the chunk that starts a choice, if there is one.
	greet(b []byte, a *answer, choice int) []byte
	// whole is the answer in one piece.
	whole(a *answer) any
}

// preamble is the part of a chunk before its choices.
func preamble(a *answer) []byte {
	b := append([]byte(nil), `{"id":`...)
	b = appendString(b, a.id)
	b = append(b, `,"object":"`...)
	b = append(b, a.dialect.object()...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, a.created, 10)
	b = append(b, `,"model":`...)
	return appendString(b, a.model)
}

// appendString appends a string as JSON.
func appendString(b []byte, s string) []byte { return append(b, marshal(s)...) }

func appendChoice(b []byte, choice int) []byte {
	b = append(b, `,"choices":[{"index":`...)
	return strconv.AppendInt(b, int64(choice), 10)
}

func appendReason(b []byte, reason string) []byte {
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if reason == "" {
		return append(b, "null"...)
	}
	return appendString(b, reason)
}

func appendUsage(b []byte, u usage) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.PromptTokens), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.TotalTokens), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.CompletionTokens), 10)
	if u.PromptTokensDetails != nil {
		b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
		b = strconv.AppendInt(b, int64(u.PromptTokensDetails.CachedTokens), 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

// completionDialect is /v1/completions.
type completionDialect struct{}

func (completionDialect) prefix() string { return "cmpl-" }
func (completionDialect) object() string { return "text_completion" }

func (completionDialect) open(a *answer, choice int) (content, reasoning []byte) {
	b := append(appendChoice(preamble(a), choice), `,"text":"`...)
	return b, b
}

func (completionDialect) close(b []byte, reason string, u *usage) []byte {
	b = append(appendReason(append(b, '"'), reason), `,"stop_reason":null}],"usage":`...)
	if u == nil {
		return append(b, "null}"...)
	}
	return append(appendUsage(b, *u), '}')
}

func (completionDialect) greet(b []byte, _ *answer, _ int) []byte { return b }

type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *usage             `json:"usage,omitempty"`
}

type completionChoice struct {
	Index        int     `json:"index"`
	Text         string  `json:"text"`
	Logprobs     *string `json:"logprobs"`
	FinishReason string  `json:"finish_reason"`
	StopReason   *string `json:"stop_reason"`
}

func (completionDialect) whole(a *answer) any {
	c := completion{ID: a.id, Object: "text_completion", Created: a.created, Model: a.model, Usage: a.wholeUsage()}
	for i, j := range a.jobs {
		c.Choices = append(c.Choices, completionChoice{
			Index: i, Text: string(j.text(nil, 0, j.request.Output)), FinishReason: j.reason,
		})
	}
	return c
}

// wholeUsage is the usage of an answer in one piece.
func (a *answer) wholeUsage() *usage {
	if a.fault.NoUsage {
		return nil
	}
	u := a.usage()
	return &u
}

// chatDialect is /v1/chat/completions.
type chatDialect struct{}

func (chatDialect) prefix() string { return "chatcmpl-" }
func (chatDialect) object() string { return "chat.completion.chunk" }

func (chatDialect) open(a *answer, choice int) (content, reasoning []byte) {
	content = append(appendChoice(preamble(a), choice), `,"delta":{"content":"`...)
	field := "reasoning"
	if a.fault.OldReasoning {
		field = "reasoning_content"
	}
	reasoning = append(appendChoice(preamble(a), choice), `,"delta":{"`+field+`":"`...)
	return content, reasoning
}

func (chatDialect) close(b []byte, reason string, u *usage) []byte {
	b = appendReason(append(b, `"}`...), reason)
	if reason != "" {
		b = append(b, `,"stop_reason":null`...)
	}
	b = append(b, "}]"...)
	if u != nil {
		b = appendUsage(append(b, `,"usage":`...), *u)
	}
	return append(b, '}')
}

// greet sends the role. vLLM sends it together with the first output, not when the request is accepted, so that a
// client that takes it for the first token is wrong by next to nothing.
func (chatDialect) greet(b []byte, a *answer, choice int) []byte {
	b = append(b, preamble(a)...)
	b = appendChoice(b, choice)
	return append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`...)
}

type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	Logprobs     *string     `json:"logprobs"`
	FinishReason string      `json:"finish_reason"`
	StopReason   *string     `json:"stop_reason"`
}

type chatMessage struct {
	Role      string   `json:"role"`
	Content   string   `json:"content"`
	Reasoning *string  `json:"reasoning"`
	ToolCalls []string `json:"tool_calls"`
}

func (chatDialect) whole(a *answer) any {
	c := chatCompletion{ID: a.id, Object: "chat.completion", Created: a.created, Model: a.model, Usage: a.wholeUsage()}
	for i, j := range a.jobs {
		thought := min(a.reasoning, j.request.Output)
		m := chatMessage{Role: "assistant", Content: string(j.text(nil, thought, j.request.Output)), ToolCalls: []string{}}
		if thought > 0 {
			s := string(j.text(nil, 0, thought))
			m.Reasoning = &s
		}
		c.Choices = append(c.Choices, chatChoice{Index: i, Message: m, FinishReason: j.reason})
	}
	return c
}
