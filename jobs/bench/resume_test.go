package bench_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/bench"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func threeCases() record.BenchPlan {
	return plan(
		record.BenchCase{Name: "a", PromptTokens: 64, OutputTokens: 2, Concurrency: 1},
		record.BenchCase{Name: "b", PromptTokens: 64, OutputTokens: 2, Concurrency: 1},
		record.BenchCase{Name: "c", PromptTokens: 64, OutputTokens: 2, Concurrency: 1},
	)
}

func steadyServer() *server {
	return &server{reply: func(int64) http.Handler { return paced(100*ms, 50*ms, 2, 64) }}
}

func names(report record.BenchReport) string {
	var all []string
	for _, one := range report.Cases {
		all = append(all, one.Case.Name)
	}
	return strings.Join(all, " ")
}

// TestResume: the pod dies in the second case; the next one keeps the first,
// runs the second anew with other prompts, and ends the run.
func TestResume(t *testing.T) {
	var kept []record.BenchReport
	first := run(t, threeCases(), steadyServer(), func(d *bench.Deps) {
		d.Pod = "p1"
		d.Checkpoint = func(_ context.Context, report record.BenchReport) error {
			report.Cases = slices.Clone(report.Cases)
			kept = append(kept, report)
			return nil
		}
	})
	if first.err != nil || len(kept) != 4 || first.report.Incomplete {
		t.Fatalf("%d checkpoints, incomplete %v, error %v", len(kept), first.report.Incomplete, first.err)
	}
	for i, want := range []string{"", "a", "a b", "a b c"} {
		if names(kept[i]) != want || kept[i].Incomplete != (i < 3) {
			t.Errorf("checkpoint %d holds %q, incomplete %v", i, names(kept[i]), kept[i].Incomplete)
		}
	}
	before := kept[1]
	// What a pod that is told to stop saves of the case that it was in.
	before.Cases = append(slices.Clone(before.Cases), record.CaseReport{
		Case: threeCases().Cases[1], Validity: record.Validity{Reasons: []record.BenchFinding{{Code: "interrupted"}}},
	})
	second := run(t, threeCases(), steadyServer(), func(d *bench.Deps) { d.Pod, d.Before = "p2", &before })
	if second.err != nil || names(second.report) != "a b c" || second.report.Incomplete {
		t.Fatalf("cases %q: %v", names(second.report), second.err)
	}
	if !second.report.Started.Equal(before.Started) || !second.report.Cases[0].Window.Start.Equal(before.Cases[0].Window.Start) {
		t.Error("the finished case was measured again")
	}
	if !second.report.Cases[1].Validity.Valid || second.report.Cases[1].Counts.Completed == 0 {
		t.Errorf("case b: %+v", second.report.Cases[1].Validity)
	}
	attempts := second.report.Attempts
	if len(attempts) != 2 || attempts[0].Pod != "p1" || attempts[1].Pod != "p2" || attempts[1].CasesBefore != 1 {
		t.Errorf("attempts %+v", attempts)
	}
	if !slices.ContainsFunc(second.events, func(e record.Event) bool {
		return e.Name == bench.EventResume && strings.Contains(e.Message, "1 of 3 cases are kept")
	}) {
		t.Error("it does not say that it goes on")
	}
}

// TestResumeSendsOtherPrompts: the server has the lost case's prompts in its
// prefix cache.
func TestResumeSendsOtherPrompts(t *testing.T) {
	sent := func(before *record.BenchReport) map[string]bool {
		seen := map[string]bool{}
		engine := steadyServer()
		bodies := make(chan string, 10_000)
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/completions") {
				body := make([]byte, r.ContentLength)
				if n, _ := r.Body.Read(body); n > 0 {
					_, prompt, _ := strings.Cut(string(body), `"prompt":`)
					bodies <- prompt[:min(len(prompt), 64)]
				}
			}
			engine.ServeHTTP(w, r)
		})
		run(t, plan(threeCases().Cases[0]), handler, func(d *bench.Deps) { d.Pod, d.Before = "p", before })
		close(bodies)
		<-bodies // the probe is the same
		for body := range bodies {
			seen[body] = true
		}
		return seen
	}
	first := sent(nil)
	again := sent(&record.BenchReport{Attempts: []record.BenchAttempt{{Pod: "p"}}})
	if len(first) < 10 || len(again) < 10 {
		t.Fatalf("%d and %d prompts", len(first), len(again))
	}
	for body := range again {
		if first[body] {
			t.Fatalf("prompt sent again: %s", body)
		}
	}
}

// TestCheckpointFails: who may not save a report learns it before the load;
// afterwards a blip costs nothing.
func TestCheckpointFails(t *testing.T) {
	denied := errors.New("forbidden")
	got := run(t, threeCases(), steadyServer(), func(d *bench.Deps) {
		d.Checkpoint = func(context.Context, record.BenchReport) error { return denied }
	})
	if !errors.Is(got.err, denied) || len(got.report.Cases) != 0 {
		t.Errorf("%d cases: %v", len(got.report.Cases), got.err)
	}
	got = run(t, threeCases(), steadyServer(), func(d *bench.Deps) {
		d.Checkpoint = func(_ context.Context, report record.BenchReport) error {
			if len(report.Cases) == 1 {
				return denied
			}
			return nil
		}
	})
	if got.err != nil || len(got.report.Cases) != 3 {
		t.Errorf("%d cases: %v", len(got.report.Cases), got.err)
	}
	if !slices.ContainsFunc(got.events, func(e record.Event) bool {
		return e.Name == bench.EventKeep && strings.Contains(e.Message, "forbidden")
	}) {
		t.Error("the blip was not told")
	}
}
