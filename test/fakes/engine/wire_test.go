package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

const (
	completionHead = `{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[`
	chatHead       = `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[`
)

// The bytes of both streaming APIs. Words follow from the prompt alone.
func TestStreamBytes(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		config     engine.Config
		want       []string
	}{
		"completion": {
			path: "/v1/completions",
			body: `{"prompt":[1,2,3],"max_tokens":2,"ignore_eos":true,"stream":true}`,
			want: []string{
				completionHead + `{"index":0,"text":" tip","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}`,
				completionHead + `{"index":0,"text":" paz","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`,
				`[DONE]`,
			},
		},
		"completion with usage": {
			path: "/v1/completions",
			body: `{"prompt":[1,2,3],"max_tokens":1,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`,
			want: []string{
				completionHead + `{"index":0,"text":" tip","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`,
				completionHead + `],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}}`,
				`[DONE]`,
			},
		},
		"continuous usage": {
			path: "/v1/completions",
			body: `{"prompt":[1,2,3],"max_tokens":1,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`,
			want: []string{
				completionHead + `{"index":0,"text":" tip","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1}}`,
				completionHead + `],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}}`,
				`[DONE]`,
			},
		},
		"cached tokens hidden": {
			path:   "/v1/completions",
			body:   `{"prompt":[1,2,3],"max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}`,
			config: engine.Config{HideCachedTokens: true},
			want: []string{
				completionHead + `{"index":0,"text":" tip","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`,
				completionHead + `],"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1}}`,
				`[DONE]`,
			},
		},
		"chat starts with the role": {
			path: "/v1/chat/completions",
			body: `{"messages":[{"role":"user","content":"hello"}],"max_completion_tokens":2,"ignore_eos":true,"stream":true}`,
			want: []string{
				chatHead + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
				chatHead + `{"index":0,"delta":{"content":" ruk"},"logprobs":null,"finish_reason":null}]}`,
				chatHead + `{"index":0,"delta":{"content":" min"},"logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
				`[DONE]`,
			},
		},
		"chat with reasoning": {
			path:   "/v1/chat/completions",
			body:   `{"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}],"max_tokens":2,"stream":true}`,
			config: engine.Config{ReasoningTokens: 1},
			want: []string{
				chatHead + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
				chatHead + `{"index":0,"delta":{"reasoning":" ruk"},"logprobs":null,"finish_reason":null}]}`,
				chatHead + `{"index":0,"delta":{"content":" min"},"logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
				`[DONE]`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.Names = []string{"m"}
			test.config.Clock = &sameNow{newJumpClock()}
			_, url := start(t, test.config)
			got := post(t, url+test.path, test.body, "X-Request-Id", "1")
			var want strings.Builder
			for _, event := range test.want {
				want.WriteString("data: " + event + "\n\n")
			}
			if diff := cmp.Diff(want.String(), got.body); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
			if kind := got.header.Get("Content-Type"); kind != "text/event-stream; charset=utf-8" {
				t.Errorf("content type %q", kind)
			}
		})
	}
}

// sameNow lets timers fire at once and time stand still.
type sameNow struct{ *jumpClock }

func (c *sameNow) Timer(d time.Duration) (<-chan time.Time, func() bool) {
	return newJumpClock().Timer(d)
}

func TestPlainAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		path, body, want string
	}{
		"completion": {
			"/v1/completions", `{"model":"m","prompt":"hello world","max_tokens":2,"ignore_eos":true}`,
			`{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[` +
				`{"index":0,"text":" tub rav","logprobs":null,"finish_reason":"length","stop_reason":null}],` +
				`"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
		},
		"several prompts": {
			"/v1/completions", `{"prompt":["hello world",""," "],"max_tokens":1}`,
			`{"error":{"message":"The decoder prompt cannot be empty","type":"BadRequestError","param":"prompt","code":400}}`,
		},
		"two prompts of token ids": {
			"/v1/completions", `{"prompt":[[1,2,3],[9]],"max_tokens":1}`,
			`{"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[` +
				`{"index":0,"text":" tip","logprobs":null,"finish_reason":"length","stop_reason":null},` +
				`{"index":1,"text":" pif","logprobs":null,"finish_reason":"length","stop_reason":null}],` +
				`"usage":{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`,
		},
		"chat with reasoning": {
			"/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}],"max_tokens":3}`,
			`{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,` +
				`"message":{"role":"assistant","content":" min zad","reasoning":" ruk","tool_calls":[]},"logprobs":null,` +
				`"finish_reason":"length","stop_reason":null}],` +
				`"usage":{"prompt_tokens":11,"total_tokens":14,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, engine.Config{Names: []string{"m"}, ReasoningTokens: 1, Clock: &sameNow{newJumpClock()}})
			got := post(t, url+test.path, test.body, "X-Request-Id", "1")
			if diff := cmp.Diff(test.want, got.body); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
