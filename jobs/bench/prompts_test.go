package bench_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
	"github.com/kubectl-inference/kubectl-inference/test/fakes/engine"
)

// In chat, prompts are exact through /tokenize: usage agrees for every request
// (vllm#10847, vllm#24937, vllm#42532). The shortest is one token more than what
// the template takes (vllm#24591).
func TestChatPromptsAreExact(t *testing.T) {
	for _, n := range []int{12, 17, 256, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, err := engine.New(engine.Config{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = fake.Close() })
				p := plan(record.BenchCase{Name: "c", PromptTokens: n, OutputTokens: 4, Concurrency: 3})
				p.Target.API = record.APIChat
				report, err := bench.Run(t.Context(), p, bench.Deps{HTTP: openaitest.Serve(t, fake)})
				if err != nil {
					t.Fatal(err)
				}
				one := report.Cases[0]
				if report.Target.PromptsBy != "tokenize" || one.Counts.PromptMismatch != 0 || one.Counts.Completed < 10 || !one.Validity.Valid {
					t.Errorf("by %s, counts %+v, validity %+v", report.Target.PromptsBy, one.Counts, one.Validity)
				}
			})
		})
	}
}

// wordServer counts words, and adds a template of seven tokens. It takes no token
// ids.
func wordServer(tokenize bool, oneToken func(word string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Prompt   any
			Messages []struct{ Content string }
			Max      int `json:"max_tokens"`
		}
		_ = json.Unmarshal(body, &request)
		text, isText := request.Prompt.(string)
		n := 0
		if len(request.Messages) > 0 {
			text, isText, n = request.Messages[0].Content, true, 7
		}
		for _, word := range strings.Fields(text) {
			n++
			if !oneToken(word) {
				n++
			}
		}
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		case r.URL.Path == "/tokenize" && tokenize:
			fmt.Fprintf(w, `{"count":%d}`, n)
		case r.URL.Path == "/tokenize":
			http.NotFound(w, r)
		case !isText:
			http.Error(w, `{"error":{"message":"prompt must be a string"}}`, http.StatusUnprocessableEntity)
		default:
			paced(100*ms, 10*ms, request.Max, n).ServeHTTP(w, r)
		}
	})
}

func TestPromptsOfText(t *testing.T) {
	every := func(string) bool { return true }
	short := func(word string) bool { return len(word) == 3 && word != "the" }
	for name, test := range map[string]struct {
		api      string
		handler  http.Handler
		prompt   int
		by       string
		mismatch bool
		kind     failure.Kind
	}{
		"chat, counted":                    {record.APIChat, wordServer(true, every), 100, "tokenize", false, 0},
		"chat, some words are two tokens":  {record.APIChat, wordServer(true, short), 100, "tokenize", false, 0},
		"chat, by usage":                   {record.APIChat, wordServer(false, every), 100, "usage", false, 0},
		"chat, by usage, and off":          {record.APIChat, wordServer(false, short), 100, "usage", true, 0},
		"chat, shorter than the template":  {record.APIChat, wordServer(true, every), 7, "tokenize", false, failure.Usage},
		"completions that take text alone": {record.APICompletions, wordServer(true, short), 100, "tokenize", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(record.BenchCase{Name: "c", PromptTokens: test.prompt, OutputTokens: 2, Concurrency: 2})
			p.Target.API = test.api
			o := run(t, p, test.handler, nil)
			if o.report.Target.PromptsBy != test.by || (o.err != nil) != (test.kind != 0) || o.err != nil && failure.KindOf(o.err) != test.kind {
				t.Fatalf("by %s, %v", o.report.Target.PromptsBy, o.err)
			}
			if o.err != nil {
				return
			}
			one := o.report.Cases[0]
			if (one.Counts.PromptMismatch > 0) != test.mismatch || !one.Validity.Valid {
				t.Errorf("%d of another length, validity %+v", one.Counts.PromptMismatch, one.Validity)
			}
			if test.mismatch && !slices.ContainsFunc(one.Validity.Warnings, func(f record.BenchFinding) bool { return f.Code == "prompt_length" }) {
				t.Error("it is not said")
			}
		})
	}
}
