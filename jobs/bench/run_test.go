package bench_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai/openaitest"
)

func TestProgress(t *testing.T) {
	o := run(t, plan(record.BenchCase{Name: "c2", PromptTokens: 64, OutputTokens: 2, Concurrency: 2}),
		&server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}, nil)
	phases := map[any]int{}
	for _, e := range o.events {
		if e.Name != record.EventProgress {
			continue
		}
		phases[e.Fields["phase"]]++
		if *e.Total != 22 || *e.Done > 22 || e.Unit != "seconds" || e.Fields["in_flight"] != 2 && e.Fields["phase"] == "measure" {
			t.Errorf("event %+v", e)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	}
	if phases["warm-up"] == 0 || phases["measure"] < 15 {
		t.Errorf("phases %v", phases)
	}
}

func TestProbe(t *testing.T) {
	c1 := record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1}
	tests := map[string]struct {
		change func(*record.BenchPlan)
		probe  http.Handler
		want   failure.Kind
		text   string
	}{
		"unknown model": {func(p *record.BenchPlan) { p.Target.Model = "x" }, nil, failure.NotFound, `model "x"`},
		"status 404":    {nil, openaitest.Script{Status: 404}, failure.NotFound, "404"},
		"status 401":    {nil, openaitest.Script{Status: 401}, failure.Denied, "401"},
		"too long":      {func(p *record.BenchPlan) { p.Cases[0].PromptTokens = 2047 }, nil, failure.Usage, "2048"},
		"text only":     {nil, paced(10*ms, ms, 1, 33), failure.Usage, "33 tokens"},
		"no key":        {func(p *record.BenchPlan) { p.Target.APIKeyEnv = "KEY" }, nil, failure.Usage, "KEY"},
		"not a plan":    {func(p *record.BenchPlan) { p.Cases = nil }, nil, failure.Usage, "no case"},
		"in-band error": {nil, openaitest.Script{Steps: []openaitest.Step{{At: ms, Write: "data: {\"error\":\"dead\"}\n\n"}}}, failure.Failed, "dead"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan(c1)
			if test.change != nil {
				test.change(&p)
			}
			o := run(t, p, &server{probe: test.probe, reply: func(int64) http.Handler { return paced(ms, ms, 2, 64) }}, nil)
			if failure.KindOf(o.err) != test.want || !strings.Contains(o.err.Error()+failure.HintOf(o.err), test.text) || len(o.report.Cases) != 0 {
				t.Errorf("got %v, hint %q", o.err, failure.HintOf(o.err))
			}
		})
	}
}

func TestThrottling(t *testing.T) {
	stat := fstest.MapFS{"cpu.stat": {Data: []byte("usage_usec 1\nnr_periods 5\nnr_throttled 3\n")}}
	o := run(t, plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1}),
		&server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}, func(d *bench.Deps) { d.Cgroup = stat })
	if n := o.report.Cases[0].Client.ThrottledPeriods; n == nil || *n != 0 {
		t.Errorf("throttled %v", n)
	}
}

func TestRecordsThatCannotBeWritten(t *testing.T) {
	o := run(t, plan(record.BenchCase{Name: "c1", PromptTokens: 64, OutputTokens: 2, Concurrency: 1}),
		&server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}, func(d *bench.Deps) { d.Records = fullDisk{} })
	if o.err == nil || !strings.Contains(o.err.Error(), "write request records") || len(o.report.Cases) != 1 {
		t.Errorf("got %v with %d cases", o.err, len(o.report.Cases))
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
