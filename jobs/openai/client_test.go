package openai_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

const ms = time.Millisecond

// outcome is a Reply with its times after Sent, which compares.
type outcome struct {
	TTFT, TTFOT, Last, Finish, End, EOF time.Duration
	Gaps                                []time.Duration
	GapTokens                           []int
	Chunks, First, Prompt, Output       int
	Reason, Flags                       string
	Status                              int
	Class                               record.ErrorClass
	Code, Message, Body                 string
}

func of(r *openai.Reply) outcome {
	after := func(t time.Time) time.Duration {
		if t.IsZero() {
			return -1
		}
		return t.Sub(r.Sent)
	}
	return outcome{
		TTFT: after(r.FirstToken), TTFOT: after(r.FirstOutput), Last: after(r.LastToken), Finish: after(r.Finish), End: after(r.End()), EOF: after(r.EOF),
		Gaps: r.Gaps, GapTokens: r.GapTokens, Chunks: r.Chunks, First: r.FirstTokens, Prompt: r.PromptTokens, Output: r.OutputTokens,
		Reason: r.FinishReason, Flags: strings.Join(r.Flags, " "), Status: r.Status, Class: r.Class, Code: r.Code, Message: r.Message, Body: r.Body,
	}
}

func at(d time.Duration, write string) openaitest.Step { return openaitest.Step{At: d, Write: write} }

func text(s string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", s)
}

const (
	finish = "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
	usage2 = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":2}}\n\n"
	done   = "data: [DONE]\n\n"
)

func TestClientDo(t *testing.T) {
	// normal is two tokens at 100 and 130 ms, the finish at 140, the end at 160.
	normal := outcome{
		TTFT: 100 * ms, TTFOT: 100 * ms, Last: 130 * ms, Finish: 140 * ms, End: 140 * ms, EOF: 160 * ms,
		Gaps: []time.Duration{30 * ms}, Chunks: 2, Prompt: 16, Output: 2, Reason: "length", Status: 200,
	}
	steps := func(tail ...openaitest.Step) []openaitest.Step {
		return append([]openaitest.Step{at(100*ms, text("a")), at(130*ms, text("b")), at(140*ms, finish)}, tail...)
	}
	rest := []openaitest.Step{at(150*ms, usage2), at(160*ms, done)}
	with := func(change func(*outcome)) outcome {
		o := normal
		change(&o)
		return o
	}
	tests := map[string]struct {
		script openaitest.Script
		want   outcome
	}{
		"normal":                              {openaitest.Script{Steps: steps(rest...)}, normal},
		"usage after the finish strands#3902": {openaitest.Script{Steps: steps(openaitest.Step{At: 160 * ms, Write: usage2 + done})}, normal},
		"usage on a chunk that has choices": {openaitest.Script{Steps: steps(openaitest.Step{
			At: 160 * ms, Write: "data: {\"choices\":[{\"index\":0,\"text\":\"\"}],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":2}}\n\n" + done,
		})}, normal},
		"role first is no token": {openaitest.Script{Steps: append([]openaitest.Step{
			at(10*ms, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"),
		}, steps(rest...)...)}, normal},
		"comments sglang#37986":  {openaitest.Script{Steps: append([]openaitest.Step{at(10*ms, ": keep-alive\n\n"), at(20*ms, ":\n\n")}, steps(rest...)...)}, normal},
		"[DONE] without a space": {openaitest.Script{Steps: steps(openaitest.Step{At: 150 * ms, Write: usage2}, openaitest.Step{At: 160 * ms, Write: "data:[DONE] \n\n"})}, normal},
		"an event in three reads": {openaitest.Script{Steps: append([]openaitest.Step{
			at(80*ms, "data:"), at(90*ms, ` {"choices":[{"index":0,"text":"a`), at(100*ms, " \"}]}\n\n"),
		}, append(steps()[1:], rest...)...)}, normal},
		"no [DONE] after the finish": {openaitest.Script{Steps: steps(openaitest.Step{At: 160 * ms, Write: usage2})}, with(func(o *outcome) { o.Flags = "no_done" })},
		"no finish before [DONE]": {
			openaitest.Script{Steps: append(steps()[:2:2], rest...)},
			with(func(o *outcome) { o.Finish, o.End, o.Reason, o.Flags = -1, 130*ms, "", "no_finish" }),
		},
		"truncated inference-perf#531": {openaitest.Script{Steps: steps()[:2]}, with(func(o *outcome) {
			o.Finish, o.End, o.EOF, o.Reason, o.Prompt, o.Output = -1, 130*ms, 130*ms, "", -1, -1
			o.Class, o.Message, o.Body = "truncated", "the stream ended before finish_reason and [DONE]", text("a")+text("b")
		})},
		"cut in the body": {openaitest.Script{Steps: steps()[:2], Cut: true}, with(func(o *outcome) {
			o.Finish, o.End, o.EOF, o.Reason, o.Prompt, o.Output = -1, 130*ms, -1, "", -1, -1
			o.Class, o.Message, o.Body = "truncated", "the connection ended inside the body", text("a")+text("b")
		})},
		"in-band error after tokens vllm#57519": {openaitest.Script{Steps: append(steps()[:2:2],
			openaitest.Step{At: 150 * ms, Write: "data: {\"error\":{\"message\":\"EngineCore died\",\"code\":500}}\n\n"}, openaitest.Step{At: 160 * ms, Write: done},
		)}, with(func(o *outcome) {
			o.Finish, o.End, o.Reason, o.Prompt, o.Output = -1, 150*ms, "", -1, -1
			o.Class, o.Code, o.Message = "in_band", "500", "EngineCore died"
			o.Body = text("a") + text("b") + "data: {\"error\":{\"message\":\"EngineCore died\",\"code\":500}}\n\n" + done
		})},
		"event of type error": {openaitest.Script{Steps: []openaitest.Step{at(50*ms, "event: error\ndata: {\"detail\":\"x\"}\n\n")}}, outcome{
			TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 50 * ms, EOF: 50 * ms, Prompt: -1, Output: -1, Status: 200,
			Class: "in_band", Message: `{"detail":"x"}`, Body: "event: error\ndata: {\"detail\":\"x\"}\n\n",
		}},
		"event that is no JSON": {openaitest.Script{Steps: []openaitest.Step{at(50*ms, "data: oops\n\n")}}, outcome{
			TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 50 * ms, EOF: 50 * ms, Prompt: -1, Output: -1, Status: 200,
			Class: "protocol", Message: "an event is not valid JSON", Body: "data: oops\n\n",
		}},
		"reasoning first guidellm#737": {openaitest.Script{Steps: []openaitest.Step{
			at(100*ms, "data: {\"choices\":[{\"delta\":{\"reasoning\":\"h\"}}]}\n\n"),
			at(900*ms, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"),
			at(910*ms, finish+usage2+done),
		}}, outcome{
			TTFT: 100 * ms, TTFOT: 900 * ms, Last: 900 * ms, Finish: 910 * ms, End: 910 * ms, EOF: 910 * ms,
			Gaps: []time.Duration{800 * ms}, Chunks: 2, Prompt: 16, Output: 2, Reason: "length", Status: 200,
		}},
		"three tokens a chunk sglang#12064": {openaitest.Script{Steps: []openaitest.Step{
			at(100*ms, "data: {\"choices\":[{\"text\":\"abc\"}],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":3}}\n\n"),
			at(130*ms, "data: {\"choices\":[{\"text\":\"def\"}],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":6}}\n\n"),
			at(160*ms, "data: {\"choices\":[{\"text\":\"ghi\",\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":9}}\n\n"+done),
		}}, outcome{
			TTFT: 100 * ms, TTFOT: 100 * ms, Last: 160 * ms, Finish: 160 * ms, End: 160 * ms, EOF: 160 * ms,
			Gaps: []time.Duration{30 * ms, 30 * ms}, GapTokens: []int{3, 3}, Chunks: 3, First: 3, Prompt: 16, Output: 9, Reason: "length", Status: 200,
		}},
		"all in one read, equal stamps aiperf chunk_latency": {openaitest.Script{Steps: []openaitest.Step{at(160*ms, text("a")+text("b")+finish+usage2+done)}}, with(func(o *outcome) {
			o.TTFT, o.TTFOT, o.Last, o.Finish, o.End, o.Gaps, o.Flags = 160*ms, 160*ms, 160*ms, 160*ms, 160*ms, []time.Duration{0}, "buffered"
		})},
		"one document, not a stream": {openaitest.Script{Type: "application/json", Steps: []openaitest.Step{{
			At: 160 * ms, Write: `{"choices":[{"index":0,"text":"ab","finish_reason":"length"}],"usage":{"prompt_tokens":16,"completion_tokens":2}}`,
		}}}, outcome{TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 160 * ms, EOF: 160 * ms, Prompt: 16, Output: 2, Reason: "length", Status: 200}},
		"compressed": {openaitest.Script{Encoding: "gzip", Steps: []openaitest.Step{at(10*ms, "\x1f\x8b")}}, outcome{
			TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 0, EOF: -1, Prompt: -1, Output: -1, Status: 200,
			Class: "protocol", Message: "the response is compressed (gzip), so its chunks have no times",
		}},
		"503 gpustack#1677": {openaitest.Script{Status: 503, Type: "text/plain", Steps: []openaitest.Step{at(20*ms, "no backend")}}, outcome{
			TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 20 * ms, EOF: 20 * ms, Prompt: -1, Output: -1, Status: 503,
			Class: "http_503", Message: "Service Unavailable", Body: "no backend",
		}},
		"429": {openaitest.Script{Status: 429, Type: "application/json", Steps: []openaitest.Step{at(20*ms, `{"error":{"message":"slow down"}}`)}}, outcome{
			TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 20 * ms, EOF: 20 * ms, Prompt: -1, Output: -1, Status: 429,
			Class: "http_429", Message: "slow down", Body: `{"error":{"message":"slow down"}}`,
		}},
		"no header in time": {openaitest.Script{HeaderAt: time.Hour}, outcome{
			TTFT: -1, TTFOT: -1, Last: -1, Finish: -1, End: 2 * time.Second, EOF: -1, Prompt: -1, Output: -1,
			Class: "timeout_header", Message: "no response header came in time",
		}},
		"stands still": {openaitest.Script{Steps: steps()[:2], Hold: true}, with(func(o *outcome) {
			o.Finish, o.EOF, o.Reason, o.Prompt, o.Output, o.End = -1, -1, "", -1, -1, 2130*ms
			o.Class, o.Message, o.Body = "timeout_idle", "the stream stood still for too long", text("a")+text("b")
		})},
		"runs out of time": {openaitest.Script{HeaderAt: 1900 * ms, Steps: []openaitest.Step{
			at(3*time.Second, text("a")), at(4500*ms, text("b")), at(6*time.Second, text("c")),
		}}, outcome{
			TTFT: 3 * time.Second, TTFOT: 3 * time.Second, Last: 4500 * ms, Finish: -1, End: 5 * time.Second, EOF: -1, Gaps: []time.Duration{1500 * ms}, Chunks: 2,
			Prompt: -1, Output: -1, Status: 200, Class: "timeout_total", Message: "the request's time ran out", Body: text("a") + text("b"),
		}},
		"held open after [DONE]": {openaitest.Script{Steps: steps(rest...), Hold: true}, with(func(o *outcome) { o.EOF, o.Flags = -1, "held_open" })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &openai.Client{HTTP: openaitest.Serve(t, test.script), URL: openaitest.URL, Timeout: 5 * time.Second, Idle: 2 * time.Second, Now: time.Now}
				got := of(client.Do(t.Context(), record.APICompletions, []byte(`{}`), nil))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The sum of the gaps leads from the first token to the last, and TPOT leaves
// out the tokens of the first chunk.
func TestReplyTPOT(t *testing.T) {
	start := time.Unix(0, 0)
	tests := map[string]struct {
		last   time.Duration
		first  int
		n      int
		want   time.Duration
		wantOK bool
	}{
		"by one":             {60 * ms, 0, 4, 20 * ms, true},
		"three in the first": {60 * ms, 3, 9, 10 * ms, true},
		"one token":          {0, 0, 1, 0, false},
		"all in one chunk":   {0, 4, 4, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reply := openai.Reply{FirstToken: start, LastToken: start.Add(test.last), FirstTokens: test.first}
			if got, ok := reply.TPOT(test.n); got != test.want || ok != test.wantOK {
				t.Errorf("got %v %v", got, ok)
			}
		})
	}
}

func TestClientSendsOnce(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if got := r.Header.Get("Authorization"); got != "Bearer key" {
			t.Errorf("authorization %q", got)
		}
		if r.URL.Path != "/v1/chat/completions" {
			t.Errorf("path %q", r.URL.Path)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	client := &openai.Client{HTTP: openai.NewHTTP(false), URL: server.URL + "/v1/", Key: "key", Timeout: time.Minute, Now: time.Now}
	reply := client.Do(t.Context(), record.APIChat, []byte(`{}`), nil)
	if reply.Class != "http_503" || requests != 1 {
		t.Errorf("%d requests, %+v", requests, reply)
	}
}

func TestClientConnection(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangUp.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	tests := map[string]struct {
		url      string
		insecure bool
		want     record.ErrorClass
	}{
		"refused":              {closed.URL, false, record.ErrorConnect},
		"unknown authority":    {secure.URL, false, record.ErrorTLS},
		"insecure":             {secure.URL, true, "http_404"},
		"not TLS":              {strings.Replace(plain.URL, "http:", "https:", 1), false, record.ErrorTLS},
		"closed without reply": {hangUp.URL, false, record.ErrorConnect},
		"no such name":         {"http://server.invalid", false, record.ErrorDNS},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := &openai.Client{HTTP: openai.NewHTTP(test.insecure), URL: test.url, Timeout: 20 * time.Second, Now: time.Now}
			if reply := client.Do(t.Context(), record.APICompletions, []byte(`{}`), nil); reply.Class != test.want {
				t.Errorf("got %s %q", reply.Class, reply.Message)
			}
		})
	}
}

func TestClientCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		client := &openai.Client{HTTP: openaitest.Serve(t, openaitest.Script{Hold: true}), URL: openaitest.URL, Timeout: time.Minute, Now: time.Now}
		reply := client.Do(ctx, record.APICompletions, []byte(`{}`), nil)
		if reply.Class != record.ErrorCancelled || reply.End().Sub(reply.Sent) != time.Second {
			t.Errorf("got %+v", of(reply))
		}
	})
}

func TestClientPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := openaitest.Script{HeaderAt: 50 * ms, Steps: []openaitest.Step{at(60*ms, text("a")+finish+done)}}
		client := &openai.Client{HTTP: openaitest.Serve(t, script), URL: openaitest.URL, Timeout: time.Minute, Now: time.Now}
		var told []time.Duration
		for i := range 2 {
			start := time.Now()
			reply := client.Do(t.Context(), record.APICompletions, []byte(`{}`), func(at time.Time) { told = append(told, at.Sub(start)) })
			if reply.ReusedConn != (i == 1) || reply.Connected.IsZero() || reply.Wrote.IsZero() || reply.Header.Sub(reply.Sent) != 50*ms {
				t.Errorf("request %d: %+v", i, reply)
			}
		}
		if diff := cmp.Diff([]time.Duration{60 * ms, 60 * ms}, told); diff != "" {
			t.Error(diff)
		}
	})
}

// A server closes a kept connection just as the next request is on its way. The
// request may have been carried out, so it is not sent again (guidellm#516).
func TestClientDoesNotRepeatOnAKeptConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var requests atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				for first := true; ; first = false {
					request, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					requests.Add(1)
					if !first {
						return
					}
					answer := text("a") + finish + done
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
				}
			}()
		}
	}()
	client := &openai.Client{HTTP: openai.NewHTTP(false), URL: "http://" + listener.Addr().String(), Timeout: time.Minute, Now: time.Now}
	var classes []record.ErrorClass
	for range 3 {
		classes = append(classes, client.Do(t.Context(), record.APICompletions, []byte(`{}`), nil).Class)
	}
	if diff := cmp.Diff([]record.ErrorClass{"", record.ErrorConnect, ""}, classes); diff != "" || requests.Load() != 3 {
		t.Errorf("%d requests, classes (-want +got):\n%s", requests.Load(), diff)
	}
}
