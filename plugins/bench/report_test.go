package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// sampleReport has a case of every kind: usable, with too few samples, failed,
// open loop, and another shape.
func sampleReport() record.BenchReport {
	number := func(v float64) *float64 { return &v }
	summary := func(p50, p99 float64) record.LatencySummary {
		return record.LatencySummary{P50: number(p50), P99: number(p99)}
	}
	one := func(name string, output, load int) record.CaseReport {
		return record.CaseReport{Case: record.BenchCase{Name: name, PromptTokens: 1024, OutputTokens: output, Concurrency: load}, Validity: record.Validity{Valid: true}}
	}
	first := one("1024-128-c1", 128, 1)
	first.RequestsPerSecond, first.OutputTokensPerSecond, first.Counts.Completed = 0.321, 41.04, 40
	first.Latency = record.CaseLatencies{TTFT: summary(0.0482, 0.9996), TPOT: summary(0.0084, 0.0241), E2E: summary(3.1234, 12.5)}
	first.Latency.E2E.LowN = true
	first.Goodput.Share = number(0.995)
	first.Server = map[string]*record.ServerSeries{record.SignalWaiting: {Mean: number(0)}, record.SignalKVCacheUsage: {Mean: number(0.781)}}
	first.Validity.Warnings = []record.BenchFinding{{Code: "low_n", Message: "the p99 rests on 40 requests"}, {Code: "buffered", Message: "something holds streams back"}}
	bad := one("1024-128-c40", 128, 40)
	bad.Counts = record.CaseCounts{Failed: 12, Errors: map[record.ErrorClass]int{"http_503": 10, record.ErrorTruncated: 2}, ErrorSamples: map[record.ErrorClass]string{"http_503": "no healthy\x1b[31m upstream"}}
	bad.Validity = record.Validity{Reasons: []record.BenchFinding{{Code: "errors", Message: "12 of 60 requests\x07 failed"}}, Warnings: first.Validity.Warnings[1:]}
	other := one("1024-512-c20", 512, 20)
	other.RequestsPerSecond, other.OutputTokensPerSecond, other.Counts.Completed = 0.78, 399.4, 1374
	other.Latency = record.CaseLatencies{TTFT: summary(0.9, 11.2), TPOT: summary(0.0489, 0.0512), E2E: summary(25.4, 104.2)}
	return record.BenchReport{
		Run: "nightly\x1b[31m", Target: record.TargetFacts{Model: "deepseek\nr1"}, Incomplete: true,
		Plan:  record.BenchPlan{Target: record.BenchTarget{URL: "http://r1-predictor.llm.svc"}, Cases: make([]record.BenchCase, 5)},
		Cases: []record.CaseReport{first, bad, other},
	}
}

func renderPlain(t *testing.T, report record.BenchReport, width int) string {
	t.Helper()
	var text, plain bytes.Buffer
	if err := render(&text, report, nextSaved+report.Run, width); err != nil {
		t.Fatal(err)
	}
	if _, err := term.New(nil, &plain, &plain, nil).Out.Write(text.Bytes()); err != nil {
		t.Fatal(err)
	}
	return plain.String()
}

func TestRender(t *testing.T) {
	for name, width := range map[string]int{"report.txt": 0, "report-80.txt": 80, "report-60.txt": 60} {
		t.Run(name, func(t *testing.T) {
			text := renderPlain(t, sampleReport(), width)
			golden.Compare(t, name, text)
			if got := lipgloss.Width(text); width > 0 && got > width {
				t.Errorf("a line has %d columns", got)
			}
			if failed, table := strings.Index(text, "must not be used"), strings.Index(text, "1024/128"); failed < 0 || failed > table {
				t.Error("failures do not come first")
			}
		})
	}
	report := sampleReport()
	report.Cases = report.Cases[1:2]
	if text := renderPlain(t, report, 80); !strings.Contains(text, "next: mend") {
		t.Errorf("a run of nothing leads on: %s", text)
	}
}

func TestScreen(t *testing.T) {
	done, total := 130.0, 600.0
	event := record.Event{Name: record.EventProgress, Done: &done, Total: &total, Fields: map[string]any{
		"case": "1024-128-c10\x1b[2J", "case_number": 3, "cases": 5, "phase": "measure", "in_flight": 10, "concurrency": 10, "completed": 312, "errors": 12,
		"errors_by_class":     map[record.ErrorClass]int{"http_503": 2, record.ErrorTimeoutTotal: 10},
		"requests_per_second": 1.3234, "output_tokens_per_second": 169.4, "ttft_p50_seconds": 0.12, "ttft_p99_seconds": 0.3, "p50_seconds": 7.61, "p99_seconds": 8.5,
		"waiting": 1.15, "kv_cache_usage": 0.344,
	}}
	plain := func(lines []string) string {
		var text bytes.Buffer
		fmt.Fprint(term.New(nil, &text, &text, nil).Out, strings.Join(lines, "\n")+"\n")
		return text.String()
	}
	golden.Compare(t, "screen-80.txt", plain(screen(event, 79)))
	golden.Compare(t, "screen-60.txt", plain(screen(event, 59)))
	for width := range 100 {
		for _, line := range screen(event, width) {
			if got := lipgloss.Width(line); got > max(width, 1) {
				t.Fatalf("%d columns on a terminal of %d: %q", got, width, line)
			}
		}
	}
	if first := plain(screen(event, 79)[:1]); !strings.HasPrefix(first, "  FAILED 12 of 324 requests:   timeout_total 10   http_503 2") {
		t.Errorf("failures do not come first: %s", first)
	}
	quiet := record.Event{Name: record.EventProgress, Fields: map[string]any{"case": "c1", "case_number": 1, "cases": 1, "phase": "warm-up"}}
	if text := plain(screen(quiet, 79)); strings.Contains(text, "FAILED") || strings.Contains(text, "server") || !strings.Contains(text, "TTFT p50 - p99 -") {
		t.Errorf("what is not known is shown: %s", text)
	}
	for _, event := range []record.Event{{Name: record.EventProgress}, {Fields: map[string]any{"case": 4}}} {
		if lines := screen(event, 79); lines != nil {
			t.Errorf("an event of something else is drawn: %q", lines)
		}
	}
}
