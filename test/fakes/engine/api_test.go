package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		status     int
		want       string
	}{
		"prompt plus output too long": {
			"/v1/completions", `{"prompt":[1,2],"max_tokens":14999}`, 400,
			`{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 14999. This model's maximum context length is 15000 tokens and your request has 2 input tokens (14999 > 15000 - 2).","type":"BadRequestError","param":"max_tokens","code":400}}`,
		},
		"prompt too long": {
			"/v1/completions", `{"prompt":"` + strings.Repeat("word", 15000) + `","max_tokens":1}`, 400,
			`{"error":{"message":"This model's maximum context length is 15000 tokens. However, your request has 15000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":"input_tokens","code":400}}`,
		},
		"unknown model": {
			"/v1/chat/completions", `{"model":"other","messages":[{"role":"user","content":"x"}]}`, 404,
			"{\"error\":{\"message\":\"The model `other` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}",
		},
		"token id out of vocabulary": {
			"/v1/completions", `{"prompt":[1,999999999]}`, 400,
			`{"error":{"message":"Token id 999999999 is out of vocabulary","type":"BadRequestError","param":"prompt","code":400}}`,
		},
		"no prompt": {
			"/v1/completions", `{"max_tokens":1}`, 400,
			`{"error":{"message":"Either prompt or prompt_embeds must be provided and non-empty.","type":"BadRequestError","param":"prompt","code":400}}`,
		},
		"prompt of the wrong type": {
			"/v1/completions", `{"prompt":[1.5]}`, 400,
			`{"error":{"message":"prompt must be a string, array of strings, array of tokens, or array of token arrays","type":"BadRequestError","param":"prompt","code":400}}`,
		},
		"not json": {
			"/v1/completions", `{"prompt":`, 400,
			`{"error":{"message":"JSON decode error: unexpected end of JSON input","type":"BadRequestError","param":null,"code":400}}`,
		},
		"no messages": {
			"/v1/chat/completions", `{}`, 400,
			`{"error":{"message":"messages must hold at least one message","type":"BadRequestError","param":"messages","code":400}}`,
		},
		"no output": {
			"/v1/completions", `{"prompt":"x","max_tokens":0}`, 400,
			`{"error":{"message":"max_tokens must be at least 1, got 0.","type":"BadRequestError","param":"max_tokens","code":400}}`,
		},
		"min over max": {
			"/v1/completions", `{"prompt":"x","max_tokens":3,"min_tokens":4}`, 400,
			`{"error":{"message":"min_tokens must be between 0 and max_tokens=3, got 4.","type":"BadRequestError","param":"min_tokens","code":400}}`,
		},
		"too many choices": {
			"/v1/completions", `{"prompt":"x","n":129}`, 400,
			`{"error":{"message":"n must be at least 1 and at most 128 choices in all, got 129.","type":"BadRequestError","param":"n","code":400}}`,
		},
		"detokenize outside the vocabulary": {
			"/detokenize", `{"tokens":[-1]}`, 400,
			`{"error":{"message":"decode token: Token id -1 is out of vocabulary","type":"BadRequestError","param":"tokens","code":400}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, engine.Config{})
			got := post(t, url+test.path, test.body)
			if got.status != test.status {
				t.Errorf("status %d, want %d", got.status, test.status)
			}
			if diff := cmp.Diff(test.want, got.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPIKey(t *testing.T) {
	_, url := start(t, engine.Config{APIKeys: []string{"one", "two"}})
	for name, test := range map[string]struct {
		path   string
		header []string
		status int
	}{
		"none":                   {"/v1/models", nil, 401},
		"wrong":                  {"/v1/models", []string{"Authorization", "Bearer three"}, 401},
		"no scheme":              {"/v1/models", []string{"Authorization", "Basic one"}, 401},
		"first":                  {"/v1/models", []string{"Authorization", "Bearer one"}, 200},
		"second":                 {"/v1/models", []string{"Authorization", "Bearer two"}, 200},
		"probes need none":       {"/health", nil, 200},
		"metrics need none":      {"/metrics", nil, 200},
		"version needs none":     {"/version", nil, 200},
		"ping needs none":        {"/ping", nil, 200},
		"admin is closed at all": {"/admin/state", nil, 404},
	} {
		t.Run(name, func(t *testing.T) {
			if got := do(t, http.MethodGet, url+test.path, "", test.header...); got.status != test.status {
				t.Errorf("status %d, want %d: %s", got.status, test.status, got.body)
			}
		})
	}
}

func TestModels(t *testing.T) {
	_, url := start(t, engine.Config{Names: []string{"a", "b"}, Root: "/models"})
	got := do(t, http.MethodGet, url+"/v1/models", "")
	want := `{"data":[` +
		`{"id":"a","object":"model","created":1700000000,"owned_by":"vllm","root":"/models","parent":null,"max_model_len":15000},` +
		`{"id":"b","object":"model","created":1700000000,"owned_by":"vllm","root":"/models","parent":null,"max_model_len":15000}],` +
		`"object":"list"}`
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
}

// A client without a tokenizer makes a prompt of an exact length: it tokenizes a text, cuts the ids, and sends them.
// vllm#24591, vllm#17408: usage must say exactly that many prompt tokens, one included.
func TestTokenizeGivesPromptsOfExactLength(t *testing.T) {
	_, url := start(t, engine.Config{})
	text := strings.Repeat("the quick brown fox jumps over the lazy dog, ", 100)
	tokens := decode[struct {
		Count, MaxModelLen int
		Tokens             []int32
	}](t, post(t, url+"/tokenize", `{"prompt":"`+text+`"}`).body)
	if tokens.Count != len(tokens.Tokens) || tokens.Count != len(text)/4 {
		t.Fatalf("count %d, %d tokens of %d bytes", tokens.Count, len(tokens.Tokens), len(text))
	}
	for _, n := range []int{1, 7, 1000} {
		ids := strings.ReplaceAll(fmt.Sprint(tokens.Tokens[:n]), " ", ",")
		back := decode[struct{ Prompt string }](t, post(t, url+"/detokenize", `{"tokens":`+ids+`}`).body)
		if back.Prompt != text[:4*n] {
			t.Errorf("detokenized %q", back.Prompt)
		}
		for form, prompt := range map[string]string{"ids": ids, "text": `"` + back.Prompt + `"`} {
			got := decode[struct {
				Usage struct {
					Prompt int `json:"prompt_tokens"`
				}
			}](t, post(t, url+"/v1/completions", `{"max_tokens":1,"prompt":`+prompt+`}`).body)
			if got.Usage.Prompt != n {
				t.Errorf("%d prompt tokens of %d sent as %s", got.Usage.Prompt, n, form)
			}
		}
	}
}

func TestTokenizeChatCountsAsTheChatDoes(t *testing.T) {
	_, url := start(t, engine.Config{})
	body := `"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"what is a knee?"}]`
	count := decode[struct{ Count int }](t, post(t, url+"/tokenize", `{`+body+`}`).body).Count
	usage := decode[struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}](t, post(t, url+"/v1/chat/completions", `{"max_tokens":1,`+body+`}`).body).Usage
	if count != usage.Prompt || count == 0 {
		t.Errorf("/tokenize counts %d, the chat %d", count, usage.Prompt)
	}
}

func TestAnswerLength(t *testing.T) {
	type answer struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Completion int `json:"completion_tokens"`
		}
	}
	for name, test := range map[string]struct {
		natural  int
		body     string
		low, top int
		reason   string
	}{
		"limit of a completion that names none": {256, `"prompt":"x"`, 16, 16, "length"},
		"ignores the end":                       {10, `"prompt":"x","max_tokens":300,"ignore_eos":true`, 300, 300, "length"},
		"ends by itself":                        {10, `"prompt":"x","max_tokens":300`, 5, 15, "stop"},
		"not before the minimum":                {10, `"prompt":"x","max_tokens":300,"min_tokens":40`, 40, 40, "stop"},
		"never ends by itself":                  {-1, `"prompt":"x","max_tokens":300`, 300, 300, "length"},
		"two choices":                           {-1, `"prompt":"x","max_tokens":7,"n":2`, 14, 14, "length"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, engine.Config{NaturalLength: test.natural})
			got := decode[answer](t, post(t, url+"/v1/completions", `{`+test.body+`}`).body)
			if n := got.Usage.Completion; n < test.low || n > test.top {
				t.Errorf("%d tokens, want %d to %d", n, test.low, test.top)
			}
			for _, c := range got.Choices {
				if c.FinishReason != test.reason {
					t.Errorf("finish reason %q, want %q", c.FinishReason, test.reason)
				}
			}
		})
	}
}

// vllm#54227: a repeated prompt is served from the prefix cache, and usage says so.
func TestCachedTokensInUsage(t *testing.T) {
	e, url := start(t, engine.Config{})
	cached := func() int {
		return decode[struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}](t, post(t, url+"/v1/completions", `{"prompt":"`+strings.Repeat("word", 100)+`","max_tokens":1}`).body).Usage.Details.Cached
	}
	if got := cached(); got != 0 {
		t.Errorf("%d cached tokens at first", got)
	}
	if got := cached(); got != 96 {
		t.Errorf("%d cached tokens the second time, want 96", got)
	}
	e.ForgetPrefixes()
	if got := cached(); got != 0 {
		t.Errorf("%d cached tokens after the cache was emptied", got)
	}
}
