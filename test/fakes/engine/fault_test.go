package engine_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

// Each fault changes the four-token stream below in one way. Chunks are shortened to their text for comparison.
func TestFaultsInStreams(t *testing.T) {
	for name, test := range map[string]struct {
		fault  engine.Fault
		path   string
		want   string
		broken bool // the body ends in an error
	}{
		"none":      {want: `data: " tip"\n\ndata: " paz"\n\ndata: " rir"\n\ndata: " seb" length\n\ndata: usage\n\ndata: [DONE]\n\n`},
		"crlf":      {fault: engine.Fault{CRLF: true}, want: `data: " tip"\r\n\r\ndata: " paz"\r\n\r\ndata: " rir"\r\n\r\ndata: " seb" length\r\n\r\ndata: usage\r\n\r\ndata: [DONE]\r\n\r\n`},
		"no space":  {fault: engine.Fault{NoSpace: true}, want: `data:" tip"\n\ndata:" paz"\n\ndata:" rir"\n\ndata:" seb" length\n\ndata:usage\n\ndata:[DONE]\n\n`},
		"comments":  {fault: engine.Fault{Comments: true, TokensPerChunk: 4}, want: `: keep-alive\n\ndata: " tip paz rir seb" length\n\n: keep-alive\n\ndata: usage\n\n: keep-alive\n\ndata: [DONE]\n\n`},
		"fields":    {fault: engine.Fault{EventFields: true, TokensPerChunk: 4, NoUsage: true, NoDone: true}, want: `event: message\nid: 7\ndata: " tip paz rir seb" length\n\n`},
		"chunks":    {fault: engine.Fault{TokensPerChunk: 3}, want: `data: " tip paz rir"\n\ndata: " seb" length\n\ndata: usage\n\ndata: [DONE]\n\n`},
		"splits":    {fault: engine.Fault{SplitWrites: true}, want: `data: " tip"\n\ndata: " paz"\n\ndata: " rir"\n\ndata: " seb" length\n\ndata: usage\n\ndata: [DONE]\n\n`},
		"no usage":  {fault: engine.Fault{NoUsage: true, TokensPerChunk: 4}, want: `data: " tip paz rir seb" length\n\ndata: [DONE]\n\n`},
		"join":      {fault: engine.Fault{JoinUsage: true, TokensPerChunk: 4}, want: `data: " tip paz rir seb" length usage\n\ndata: [DONE]\n\n`},
		"no done":   {fault: engine.Fault{NoDone: true, TokensPerChunk: 4}, want: `data: " tip paz rir seb" length\n\ndata: usage\n\n`},
		"no finish": {fault: engine.Fault{NoFinish: true, TokensPerChunk: 4}, want: `data: " tip paz rir seb"\n\ndata: usage\n\ndata: [DONE]\n\n`},
		"split finish": {
			fault: engine.Fault{SplitFinish: true, TokensPerChunk: 4},
			want:  `data: " tip paz rir seb"\n\ndata: "" length\n\ndata: usage\n\ndata: [DONE]\n\n`,
		},
		"error after two tokens (vllm#57519)": {
			fault: engine.Fault{ErrorAfter: 2},
			want:  `data: " tip"\n\ndata: " paz"\n\ndata: error 500\n\ndata: [DONE]\n\n`,
		},
		"error within a chunk": {
			fault: engine.Fault{ErrorAfter: 3, TokensPerChunk: 2, NoDone: true},
			want:  `data: " tip paz"\n\ndata: " rir"\n\ndata: error 500\n\n`,
		},
		"cut after three tokens": {fault: engine.Fault{CutAfter: 3}, want: `data: " tip"\n\ndata: " paz"\n\ndata: " rir"\n\n`, broken: true},
		"cut after the last":     {fault: engine.Fault{CutAfter: 4, TokensPerChunk: 4}, want: `data: " tip paz rir seb" length\n\n`, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			e, url := start(t, engine.Config{Names: []string{"m"}, Clock: &sameNow{newJumpClock()}})
			e.SetFaults(test.fault)
			got := do(t, http.MethodPost, url+"/v1/completions",
				`{"prompt":[1,2,3],"max_tokens":4,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`, "X-Request-Id", "1")
			if (got.err != nil) != test.broken {
				t.Errorf("error of the body = %v, broken: want %v", got.err, test.broken)
			}
			want := strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(test.want)
			if diff := cmp.Diff(want, shorten(got.body)); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
		})
	}
}

// shorten leaves of a completion chunk its text, finish reason and whether it has usage.
func shorten(body string) string {
	return strings.NewReplacer(
		completionHead+`{"index":0,"text":`, "",
		`,"logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":`, "",
		`,"logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":`, " length",
		completionHead+`],"usage":{"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0}}}`, "usage",
		`{"prompt_tokens":3,"total_tokens":7,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0}}}`, " usage",
		`{"error":{"message":"EngineCore encountered an issue. See stack trace for the root cause.","type":"InternalServerError","param":null,"code":500}}`, "error 500",
		"null}", "",
	).Replace(body)
}

func TestReasoningOfChatStreams(t *testing.T) {
	for name, test := range map[string]struct {
		fault engine.Fault
		want  []string
	}{
		"reasoning, then content": {
			engine.Fault{ReasoningTokens: 2},
			[]string{`"role":"assistant","content":""`, `"reasoning":" ruk"`, `"reasoning":" min"`, `"content":" zad"`},
		},
		"the field's old name": {
			engine.Fault{ReasoningTokens: 2, OldReasoning: true},
			[]string{`"role":"assistant","content":""`, `"reasoning_content":" ruk"`, `"reasoning_content":" min"`, `"content":" zad"`},
		},
		"no chunk is both": {
			engine.Fault{ReasoningTokens: 1, TokensPerChunk: 3},
			[]string{`"role":"assistant","content":""`, `"reasoning":" ruk"`, `"content":" min zad"`},
		},
		// guidellm#737: all tokens spent on thinking.
		"nothing but reasoning": {
			engine.Fault{ReasoningTokens: 10, TokensPerChunk: 3},
			[]string{`"role":"assistant","content":""`, `"reasoning":" ruk min zad"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, url := start(t, engine.Config{})
			e.SetFaults(test.fault)
			body := post(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}],"max_tokens":3,"stream":true}`).body
			var got []string
			for line := range strings.Lines(body) {
				if _, delta, ok := strings.Cut(line, `"delta":{`); ok {
					delta, _, _ = strings.Cut(delta, "}")
					got = append(got, delta)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("deltas (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfPlainAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		fault  engine.Fault
		status int // 0: no answer
	}{
		"error":    {engine.Fault{ErrorAfter: 1}, 500},
		"cut":      {engine.Fault{CutAfter: 1}, 0},
		"reset":    {engine.Fault{CutAfter: 1, Reset: true}, 0},
		"status":   {engine.Fault{Status: 503}, 503},
		"too many": {engine.Fault{Status: 429, RetryAfter: 7}, 429},
	} {
		t.Run(name, func(t *testing.T) {
			e, url := start(t, engine.Config{})
			e.SetFaults(test.fault)
			got := do(t, http.MethodPost, url+"/v1/completions", `{"prompt":"x","max_tokens":4}`)
			if got.status != test.status || (got.err != nil) != (test.status == 0) {
				t.Errorf("status %d, error %v; want status %d", got.status, got.err, test.status)
			}
			if test.fault.RetryAfter > 0 && got.header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
			}
		})
	}
}

// dynamo#3674: the accounting of mixed failures needs a server that fails a known share of requests.
func TestFaultsPickRequests(t *testing.T) {
	e, url := start(t, engine.Config{})
	e.SetFaults(engine.Fault{Status: 429, Every: 3, Times: 2}, engine.Fault{Status: 503, Times: 1})
	var got []int
	for range 8 {
		got = append(got, post(t, url+"/v1/completions", `{"prompt":"x","max_tokens":1}`).status)
	}
	if diff := cmp.Diff([]int{429, 503, 200, 429, 200, 200, 200, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestFaultHeaderNeedsAdmin(t *testing.T) {
	for name, test := range map[string]struct {
		admin  bool
		header string
		status int
	}{
		"closed":     {false, `{"status":503}`, 200},
		"open":       {true, `{"status":503}`, 503},
		"misspelt":   {true, `{"statsu":503}`, 400},
		"only chunk": {true, `{"tokens_per_chunk":2}`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, engine.Config{Admin: test.admin})
			got := post(t, url+"/v1/completions", `{"prompt":"x","max_tokens":1}`, engine.FaultHeader, test.header)
			if got.status != test.status {
				t.Errorf("status %d, want %d", got.status, test.status)
			}
		})
	}
}

// Silence, before the answer and within it, lasts until the client loses patience.
func TestSilence(t *testing.T) {
	for name, fault := range map[string]engine.Fault{
		"never answers":   {NeverAnswer: true},
		"stalls":          {StallAfter: 2},
		"stalls in plain": {StallAfter: 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, engine.Config{}, func(t *testing.T, e *engine.Engine, client *http.Client) {
				e.SetFaults(fault)
				body := distinct(1, 16, 5)
				if name == "stalls in plain" {
					body = `{"prompt":"hello"}`
				}
				if err := patience(t, client, body); err == nil {
					t.Error("the answer came to an end")
				}
			})
		})
	}
}
