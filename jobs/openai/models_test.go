package openai_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

func TestModelsChoose(t *testing.T) {
	const (
		one  = `{"data":[{"id":"m","max_model_len":4096}]}`
		lora = `{"data":[{"id":"m","parent":null},{"id":"adapter","parent":"m"}]}`
		two  = `{"data":[{"id":"a"},{"id":"b"}]}`
	)
	tests := map[string]struct {
		status int
		body   string
		name   string
		want   string
		kind   failure.Kind
		hint   string
	}{
		"the only one":            {200, one, "", "m", 0, ""},
		"named":                   {200, one, "m", "m", 0, ""},
		"adapters do not count":   {200, lora, "", "m", 0, ""},
		"adapter by name":         {200, lora, "adapter", "adapter", 0, ""},
		"another name":            {200, one, "x", "", failure.NotFound, "it serves m"},
		"two":                     {200, two, "", "", failure.Usage, "a, b"},
		"none":                    {200, `{"data":[]}`, "", "", failure.NotFound, "wait"},
		"no list, named":          {404, "", "m", "m", 0, ""},
		"no list, not named":      {404, "", "", "", failure.Usage, "--model"},
		"not an inference server": {200, "<html>", "", "", failure.Failed, "OpenAI-compatible"},
		"key is missing":          {401, `{"error":{"message":"no key"}}`, "", "", failure.Denied, "API key"},
		"nothing behind":          {503, "no healthy upstream", "", "", failure.Unreachable, "predictor"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			client := &openai.Client{HTTP: openai.NewHTTP(false), URL: server.URL, Timeout: time.Minute, Now: time.Now}
			models, err := client.Models(t.Context())
			var model openai.Model
			if err == nil {
				model, err = models.Choose(test.name)
			}
			if test.kind == 0 {
				if err != nil || model.ID != test.want {
					t.Fatalf("got %+v, %v", model, err)
				}
				return
			}
			if err == nil || failure.KindOf(err) != test.kind || !strings.Contains(failure.HintOf(err), test.hint) {
				t.Errorf("got %v, hint %q", err, failure.HintOf(err))
			}
		})
	}
}

func TestModelsUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client := &openai.Client{HTTP: openai.NewHTTP(false), URL: server.URL, Timeout: time.Minute, Now: time.Now}
	if _, err := client.Models(t.Context()); failure.KindOf(err) != failure.Unreachable || failure.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		reply openai.Reply
		want  failure.Kind
	}{
		"not found": {openai.Reply{Status: 404, Class: "http_404"}, failure.NotFound},
		"denied":    {openai.Reply{Status: 403, Class: "http_403"}, failure.Denied},
		"refused":   {openai.Reply{Status: 400, Class: "http_400"}, failure.Usage},
		"gateway":   {openai.Reply{Status: 502, Class: "http_502"}, failure.Unreachable},
		"no answer": {openai.Reply{Class: record.ErrorConnect}, failure.Unreachable},
		"in band":   {openai.Reply{Status: 200, Class: record.ErrorInBand}, failure.Failed},
	}
	client := &openai.Client{URL: "http://x"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := client.Check(&test.reply, "m"); err == nil || failure.KindOf(err) != test.want {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := client.Check(&openai.Reply{Status: 200}, "m"); err != nil {
		t.Error(err)
	}
}

func TestRequestBody(t *testing.T) {
	tests := map[string]struct {
		request openai.Request
		want    string
	}{
		"token ids": {
			openai.Request{API: "completions", Model: "m", Tokens: []uint32{1, 22, 333}, OutputTokens: 4, Temperature: 0.2, Stream: true},
			`{"model":"m","prompt":[1,22,333],"max_tokens":4,"min_tokens":4,"ignore_eos":true,"temperature":0.2,"stream":true,"stream_options":{"include_usage":true}}`,
		},
		"text": {
			openai.Request{API: "completions", Model: "m", Text: `"a"`, OutputTokens: 4},
			`{"model":"m","prompt":"\"a\"","max_tokens":4,"min_tokens":4,"ignore_eos":true,"temperature":0}`,
		},
		"chat": {
			openai.Request{API: "chat", Model: "m", Text: "a", OutputTokens: 1, Stream: true, ContinuousUsage: true},
			`{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":1,"min_tokens":1,"ignore_eos":true,"temperature":0,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := string(test.request.Body()); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
