package record

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// seedColumns are the columns of Kelvinskell/
// ai-inference-capacity-engineering-platform, as its runner writes them.
const seedColumns = "timestamp,run_id,profile,profile_hypothesis,stream,prompt_tokens,max_tokens,gpu_memory_utilization,max_model_len,max_num_seqs,max_num_batched_tokens,concurrency," +
	"case_status,error_type,error_message," +
	"requests_total,successes,errors,success_rate_pct,error_rate_pct,attempted_rps,successful_rps,output_length_match_rate_pct," +
	"actual_prompt_tokens_total,actual_output_tokens_total,actual_prompt_tokens_per_sec,actual_output_tokens_per_sec,actual_total_tokens_per_sec," +
	"latency_avg_ms,latency_min_ms,latency_max_ms,latency_p50_ms,latency_p90_ms,latency_p95_ms,latency_p99_ms,error_duration_avg_ms,error_duration_p95_ms," +
	"ttft_avg_ms,ttft_p50_ms,ttft_p95_ms,ttft_p99_ms,time_per_output_token_avg_ms,time_per_output_token_p95_ms," +
	"server_output_tokens_total,server_output_tokens_per_sec,preemptions_total,prefix_cache_hits_total," +
	"requests_running_avg,requests_running_max,requests_waiting_avg,requests_waiting_max,kv_cache_pct_avg,kv_cache_pct_max," +
	"gpu_util_avg,gpu_util_max,gpu_memory_used_mib_avg,gpu_memory_used_mib_max,gpu_memory_free_mib_min,gpu_memory_pct_avg,gpu_memory_pct_max," +
	"tensor_active_avg,tensor_active_max,dram_active_avg,dram_active_max"

// csvReport is a report of two cases in which every number is another.
func csvReport() BenchReport {
	number := func(v float64) *float64 { return &v }
	n := func(v int) *int { return &v }
	yes := true
	start := time.Date(2026, 7, 1, 12, 0, 30, 0, time.UTC)
	good := CaseReport{
		Case:              BenchCase{Name: "1024-128-c5", PromptTokens: 1024, OutputTokens: 128, Concurrency: 5, Stream: &yes},
		Window:            CaseWindow{Start: start, End: start.Add(100 * time.Second), Seconds: 100, RampSeconds: 30, Steady: true},
		Counts:            CaseCounts{Started: 1000, Succeeded: 995, Failed: 5, Completed: 995, Errors: map[ErrorClass]int{ErrorShortOutput: 4, StatusClass(503): 1}},
		RequestsPerSecond: 9.96, PromptTokensPerSecond: 10240.5, OutputTokensPerSecond: 1280.25,
		Latency: CaseLatencies{
			E2E:  LatencySummary{Count: 995, Mean: number(1.5), Min: number(1.25), Max: number(4), P50: number(1.4), P90: number(2), P95: number(2.5), P99: number(3.5)},
			TTFT: LatencySummary{Count: 995, Mean: number(0.0625), P50: number(0.05), P95: number(0.125), P99: number(0.25)},
			TPOT: LatencySummary{Count: 995, Mean: number(0.0115), P95: number(0.0135)},
		},
		Server: map[string]*ServerSeries{
			SignalWaiting: {Mean: number(0.242), Max: number(2)}, SignalRunning: {Mean: number(4.75), Max: number(5)},
			SignalKVCacheUsage: {Mean: number(0.25), Max: number(0.375)}, SignalGenerationTokens: {Increase: number(128000)},
			SignalPreemptions: {Increase: number(3)}, SignalPrefixHits: {Increase: number(7)},
		},
		Validity: Validity{Valid: true},
	}
	bad := CaseReport{
		Case: BenchCase{Name: "1024-128-c40", PromptTokens: 1024, OutputTokens: 128, Concurrency: 40}, Window: CaseWindow{Start: start},
		Validity: Validity{Reasons: []BenchFinding{{Code: "errors", Message: "all failed, \"quoted\"\x1b[31m"}, {Code: "no_requests", Message: "none"}}},
	}
	return BenchReport{
		Run: "nightly", Target: TargetFacts{MaxModelLen: n(15000)}, Cases: []CaseReport{good, bad},
		Plan: BenchPlan{Profile: &BenchProfile{Name: "concurrency-saturation", Hypothesis: "queues, then waits", Engine: &EngineSettings{GPUMemoryUtilization: number(0.9), MaxNumSeqs: n(40), MaxNumBatchedTokens: n(2048)}}},
	}
}

func TestBenchCSV(t *testing.T) {
	var text bytes.Buffer
	if err := csvReport().WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text.Bytes())).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatal(rows, err)
	}
	if diff := cmp.Diff(strings.Split(seedColumns, ","), rows[0]); diff != "" || len(rows[0]) != 64 {
		t.Errorf("%d columns: %s", len(rows[0]), diff)
	}
	want := "2026-07-01T12:00:00Z,nightly,concurrency-saturation,\"queues, then waits\",true,1024,128,0.9,15000,40,2048,5,completed,,," +
		"1000,995,5,99.5,0.5,10,9.96,99.5996,1024050,128025,10240.5,1280.25,11520.75," +
		"1500,1250,4000,1400,2000,2500,3500,,,62.5,50,125,250,11.5,13.5," +
		"128000,1280,3,7,4.75,5,0.242,2,25,37.5,,,,,,,,,,,"
	for i, cell := range mustRow(t, want) {
		if got := rows[1][i]; got != cell {
			t.Errorf("%s is %q, want %q", rows[0][i], got, cell)
		}
	}
	if got := rows[2][12:16]; got[0] != "failed" || got[1] != "errors" || got[2] != "all failed, \"quoted\"[31m; none" || got[3] != "0" {
		t.Errorf("%q", got)
	}
	// What is not known is empty, never 0.
	if cell := rows[2][20]; cell != "" {
		t.Errorf("attempted_rps of no window is %q", cell)
	}
}

func mustRow(t *testing.T, line string) []string {
	t.Helper()
	row, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// TestBenchCSVRoundTrip: what the columns state comes back.
func TestBenchCSVRoundTrip(t *testing.T) {
	var text, again bytes.Buffer
	want := csvReport()
	if err := want.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	reports, err := ReadBenchCSV(bytes.NewReader(text.Bytes()))
	if err != nil || len(reports) != 1 {
		t.Fatal(reports, err)
	}
	got := reports[0]
	if got.Cases[0].Window.Seconds != 100 || got.Cases[0].Counts.Failed != 5 || !got.Cases[0].Validity.Valid || got.Cases[1].Validity.Valid {
		t.Errorf("%+v", got.Cases)
	}
	approx := cmpopts.EquateApprox(1e-9, 0)
	for _, pick := range []func(BenchReport) any{
		func(r BenchReport) any { return r.Cases[0].Latency },
		func(r BenchReport) any { return *r.Cases[0].Server[SignalKVCacheUsage].Max },
		func(r BenchReport) any { return r.Cases[0].RequestsPerSecond },
		func(r BenchReport) any { return r.Cases[0].Case },
	} {
		if diff := cmp.Diff(pick(want), pick(got), approx); diff != "" {
			t.Error(diff)
		}
	}
	// The platform's older tables have no status.
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := csv.NewWriter(&again)
	for _, row := range rows {
		_ = out.Write(append(append([]string{}, row[:12]...), row[15:]...))
	}
	out.Flush()
	if old, err := ReadBenchCSV(&again); err != nil || !old[0].Cases[0].Validity.Valid || old[0].Cases[0].RequestsPerSecond != 9.96 {
		t.Errorf("%+v, %v", old, err)
	}
}

func TestReadBenchCSV(t *testing.T) {
	const header = "run_id,prompt_tokens,max_tokens,concurrency,requests_total,successes,errors,successful_rps,attempted_rps,latency_p99_ms,max_num_seqs\n"
	for name, test := range map[string]struct {
		text, err string
		names     string // RUN:CASE, ! for a case that is not valid
	}{
		"two runs":        {header + "a,8,4,1,10,10,0,1,1,5,40\nb,8,4,1,10,10,0,1,1,5,40\na,8,4,2,10,10,0,1,1,5,40\n", "", "a:8-4-c1 a:8-4-c2 b:8-4-c1"},
		"a point twice":   {header + "a,8,4,1,10,10,0,1,1,5,40\na,8,4,1,10,10,0,1,1,5,40\n", "", "a:8-4-c1 a:8-4-c1-2"},
		"failed, unsaid":  {header + "a,8,4,1,10,5,5,1,1,5,40\n", "", "a:8-4-c1!"},
		"another engine":  {header + "a,8,4,1,10,10,0,1,1,5,40\na,8,4,1,10,10,0,1,1,5,8\n", "", "a:8-4-c1 a:8-4-c1-s8-b!"},
		"nothing":         {"", "read CSV: it is empty", ""},
		"a header alone":  {header, "read CSV: it has no row", ""},
		"another table":   {"a,b\n1,2\n", "read CSV: it has no column run_id", ""},
		"a word":          {header + "a,8,4,one,10,10,0,1,1,5,40\n", `read CSV: line 2: concurrency is "one", not a number`, ""},
		"a cell too few":  {header + "a,8\n", "wrong number of fields", ""},
		"not a number":    {header + "a,8,4,1,10,10,0,NaN,1,5,40\n", `successful_rps is "NaN"`, ""},
		"below 0":         {header + "a,8,4,1,10,10,0,-1,1,5,40\n", `successful_rps is "-1"`, ""},
		"far too many":    {header + "a,8,4,1,1e300,10,0,1,1,5,40\n", "", "a:8-4-c1"},
		"a name to clean": {header + "a\x1b[31m,8,4,1,10,10,0,1,1,5,40\n", "", "a[31m:8-4-c1"},
	} {
		t.Run(name, func(t *testing.T) {
			reports, err := ReadBenchCSV(strings.NewReader(test.text))
			if test.err != "" {
				if failure.KindOf(err) != failure.Usage || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			var names []string
			for _, report := range reports {
				for _, c := range report.Cases {
					mark := ""
					if !c.Validity.Valid {
						mark = "!"
					}
					names = append(names, report.Run+":"+c.Case.Name+mark)
				}
			}
			if got := strings.Join(names, " "); err != nil || got != test.names {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestEngineSettings(t *testing.T) {
	var all EngineSettings
	for _, text := range []string{"max_num_seqs=40", "max_num_batched_tokens=2048", "max_model_len=15000", "gpu_memory_utilization=0.9"} {
		if err := all.Set(text); err != nil {
			t.Error(err)
		}
	}
	if *all.MaxNumSeqs != 40 || *all.MaxNumBatchedTokens != 2048 || *all.MaxModelLen != 15000 || *all.GPUMemoryUtilization != 0.9 {
		t.Errorf("%+v", all)
	}
	for _, text := range []string{"", "max_num_seqs", "max_num_seqs=0", "max_num_seqs=1.5", "max_num_seqs=1e30", "gpu_memory_utilization=90", "tp=2", "max_num_seqs=NaN"} {
		if err := all.Set(text); failure.KindOf(err) != failure.Usage {
			t.Errorf("%q: %v", text, err)
		}
	}
}
