package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

const ms = time.Millisecond

// paced answers with tokens at known times: the first after ttft, then one each
// gap, the finish with the last.
func paced(ttft, gap time.Duration, tokens, prompt int) openaitest.Script {
	var script openaitest.Script
	for i := range tokens {
		write := `data: {"choices":[{"index":0,"text":"a"}]}` + "\n\n"
		if i == tokens-1 {
			write = `data: {"choices":[{"index":0,"text":"a","finish_reason":"length"}]}` + "\n\n" +
				fmt.Sprintf(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, tokens) + "\n\ndata: [DONE]\n\n"
		}
		script.Steps = append(script.Steps, openaitest.Step{At: ttft + time.Duration(i)*gap, Write: write})
	}
	return script
}

// server is an engine with one model whose replies the test decides by request.
type server struct {
	requests atomic.Int64
	// reply answers the n-th request for a completion, counted from 1 after the
	// probe.
	reply func(n int64) http.Handler
	probe http.Handler
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		_, _ = io.WriteString(w, `{"data":[{"id":"m","max_model_len":2048}]}`)
		return
	}
	if r.URL.Path == "/tokenize" {
		http.NotFound(w, r)
		return
	}
	n := s.requests.Add(1) - 1
	if n == 0 {
		handler := s.probe
		if handler == nil {
			handler = paced(10*ms, 10*ms, 1, 16)
		}
		handler.ServeHTTP(w, r)
		return
	}
	s.reply(n).ServeHTTP(w, r)
}

func plan(cases ...record.BenchCase) record.BenchPlan {
	return record.BenchPlan{
		TypeMeta: record.Meta(record.KindBenchPlan), Run: "test",
		Target: record.BenchTarget{URL: openaitest.URL, API: record.APICompletions},
		Cases:  cases, WarmupSeconds: 2, DurationSeconds: 20, RequestTimeoutSeconds: 60, Stream: true, Seed: 1,
	}
}

type outcome struct {
	report  record.BenchReport
	records []record.RequestRecord
	events  []record.Event
	err     error
}

// run carries out a plan on virtual time.
func run(t *testing.T, p record.BenchPlan, handler http.Handler, change func(*bench.Deps)) outcome {
	t.Helper()
	var o outcome
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		deps := bench.Deps{
			HTTP: openaitest.Serve(t, handler), Records: &file, ToolVersion: "v0",
			Emit: func(e record.Event) { o.events = append(o.events, e) },
		}
		if change != nil {
			change(&deps)
		}
		o.report, o.err = bench.Run(t.Context(), p, deps)
		if file.Len() > 0 {
			var err error
			if _, o.records, err = record.ReadRequests(&file); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

func codes(findings []record.BenchFinding) string {
	var all []string
	for _, one := range findings {
		all = append(all, one.Code)
	}
	return strings.Join(all, " ")
}

func value(v *float64) float64 {
	if v == nil {
		return -1
	}
	return *v
}

// recordsFunc calls f for every request record of a run; wait returns when the
// last one was taken.
func recordsFunc(t *testing.T, f func(record.RequestRecord)) (w io.Writer, wait func()) {
	t.Helper()
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(reader)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var one record.RequestRecord
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
				t.Error(err)
			}
			if one.Case != "" {
				f(one)
			}
		}
	}()
	wait = func() {
		_ = writer.Close()
		<-ended
	}
	t.Cleanup(wait)
	return writer, wait
}
