package bench_test

import (
	"net/http"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

func TestReplies(t *testing.T) {
	tests := map[string]struct {
		reply    openaitest.Script
		change   func(*record.BenchPlan)
		reasons  string
		warnings string
		check    func(*testing.T, record.CaseReport)
	}{
		"shorter than asked": {
			reply: paced(100*ms, 10*ms, 5, 64), reasons: "hopeless errors no_requests",
			check: func(t *testing.T, c record.CaseReport) {
				if c.Counts.Errors[record.ErrorShortOutput] != c.Counts.Started {
					t.Errorf("counts %+v", c.Counts)
				}
			},
		},
		"other prompt length vllm#10847": {reply: paced(100*ms, 10*ms, 10, 65), reasons: "prompt_length"},
		"other prompt length of text": {
			reply: paced(100*ms, 10*ms, 10, 70), change: func(p *record.BenchPlan) { p.Target.API = record.APIChat }, warnings: "prompt_length",
		},
		"no usage flexible-inference-bench#66": {
			reply: func() openaitest.Script {
				s := paced(100*ms, 10*ms, 10, 64)
				s.Steps[9].Write = `data: {"choices":[{"text":" ","finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n"
				return s
			}(),
			warnings: "tokens_estimated",
			check: func(t *testing.T, c record.CaseReport) {
				if c.Counts.TokensEstimated != c.Counts.Completed || value(c.Latency.TPOT.P50) != 0.01 {
					t.Errorf("counts %+v, TPOT %v", c.Counts, value(c.Latency.TPOT.P50))
				}
			},
		},
		"buffered": {
			reply: func() openaitest.Script {
				var all string
				for _, step := range paced(0, 0, 10, 64).Steps {
					all += step.Write
				}
				return openaitest.Script{Steps: []openaitest.Step{{At: 190 * ms, Write: all}}}
			}(),
			warnings: "buffered",
		},
		"not streamed": {
			reply:  openaitest.Script{Type: "application/json", Steps: []openaitest.Step{{At: 190 * ms, Write: `{"choices":[{"text":"x","finish_reason":"length"}],"usage":{"prompt_tokens":64,"completion_tokens":10}}`}}},
			change: func(p *record.BenchPlan) { p.Stream = false },
			check: func(t *testing.T, c record.CaseReport) {
				if c.Latency.TTFT.Count != 0 || value(c.Latency.E2E.P50) != 0.19 || c.OutputTokensPerSecond < 50 {
					t.Errorf("TTFT %+v, E2E %v, %v tok/s", c.Latency.TTFT, value(c.Latency.E2E.P50), c.OutputTokensPerSecond)
				}
			},
		},
		"tokens by chunk vllm#50600": {
			reply: openaitest.Script{Steps: []openaitest.Step{
				{At: 100 * ms, Write: `data: {"choices":[{"text":"abcd"}],"usage":{"prompt_tokens":64,"completion_tokens":4}}` + "\n\n"},
				{At: 160 * ms, Write: `data: {"choices":[{"text":"abcdef","finish_reason":"length"}],"usage":{"prompt_tokens":64,"completion_tokens":10}}` + "\n\ndata: [DONE]\n\n"},
			}},
			check: func(t *testing.T, c record.CaseReport) {
				if value(c.Latency.ITL.P50) != 0.01 || value(c.Latency.ICL.P50) != 0.06 || value(c.Latency.TPOT.P50) != 0.01 || c.Latency.ITL.Count != 6*c.Latency.ICL.Count {
					t.Errorf("ITL %+v, ICL %+v, TPOT %+v", c.Latency.ITL, c.Latency.ICL, c.Latency.TPOT)
				}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 10, Concurrency: 1})
			p.DurationSeconds = 57
			s := &server{reply: func(int64) http.Handler { return test.reply }}
			if test.change != nil {
				test.change(&p)
			}
			if !p.Stream {
				s.probe = openaitest.Script{Type: "application/json", Steps: []openaitest.Step{{Write: `{"choices":[{"text":"x","finish_reason":"length"}]}`}}}
			}
			one := run(t, p, s, nil).report.Cases[0]
			if got := codes(one.Validity.Reasons); got != test.reasons {
				t.Errorf("reasons %q", got)
			}
			if got := codes(one.Validity.Warnings); test.reasons == "" && got != test.warnings {
				t.Errorf("warnings %q", got)
			}
			if test.check != nil {
				test.check(t, one)
			}
		})
	}
}
