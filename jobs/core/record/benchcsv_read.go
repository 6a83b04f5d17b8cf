package record

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// csvScrape is the distance in seconds of the server's samples that a CSV's
// averages are of: it states none, and this is how that platform reads them.
const csvScrape = 15.0

// csvErrorShare is the share of failed requests above which a row whose
// case_status is not known must not be used.
const csvErrorShare = 0.01

// csvNeeded are the columns without which a row says nothing about capacity.
var csvNeeded = []string{"run_id", "prompt_tokens", "max_tokens", "concurrency", "successes", "successful_rps", "latency_p99_ms"}

const csvHint = "give the CSV of `kubectl inference bench get RUN -o csv`, or results of the capacity platform of the same columns"

// ReadBenchCSV reads rows in the columns of WriteCSV into a report for each
// run_id, in the order in which they come. Columns are found by name and may be
// missing, as in tables of before case_status. What a column does not state stays
// unknown: there is no steady window, interval or histogram in such a report.
func ReadBenchCSV(r io.Reader) ([]BenchReport, error) {
	rows := csv.NewReader(r)
	header, err := rows.Read()
	if err != nil {
		return nil, failure.New(failure.Usage, csvHint, "read CSV: %w", csvCause(err))
	}
	columns := map[string]int{}
	for i, name := range header {
		columns[strings.TrimPrefix(name, "\ufeff")] = i
	}
	for _, name := range csvNeeded {
		if _, there := columns[name]; !there {
			return nil, failure.New(failure.Usage, csvHint, "read CSV: it has no column %s", name)
		}
	}
	var reports []BenchReport
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, failure.New(failure.Usage, csvHint, "read CSV: %w", err)
		}
		line, _ := rows.FieldPos(0)
		row := csvCells{columns: columns, cells: cells}
		reports = row.into(reports)
		if row.err != nil {
			return nil, failure.New(failure.Usage, csvHint, "read CSV: line %d: %w", line, row.err)
		}
	}
	if len(reports) == 0 {
		return nil, failure.New(failure.Usage, csvHint, "read CSV: it has no row")
	}
	return reports, nil
}

func csvCause(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	return err
}

// csvCells is one row while it is read; err is the first cell that is wrong.
type csvCells struct {
	columns map[string]int
	cells   []string
	err     error
}

func (r *csvCells) text(name string) string {
	if i, there := r.columns[name]; there && i < len(r.cells) {
		return failure.Clean(r.cells[i])
	}
	return ""
}

// number is a cell divided by scale; nil for one that is empty or not there.
func (r *csvCells) number(name string, scale float64) *float64 {
	text := r.text(name)
	if text == "" || text == "null" {
		return nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		if r.err == nil {
			r.err = fmt.Errorf("%s is %q, not a number", name, text)
		}
		return nil
	}
	value /= scale
	return &value
}

func (r *csvCells) rate(name string) float64 {
	if value := r.number(name, 1); value != nil {
		return *value
	}
	return 0
}

func (r *csvCells) count(name string) int { return int(min(r.rate(name), math.MaxInt32)) }

func (r *csvCells) optional(name string) *int {
	if r.number(name, 1) == nil {
		return nil
	}
	n := r.count(name)
	return &n
}

func (r *csvCells) latency(prefix string, count int) LatencySummary {
	at := func(name string) *float64 { return r.number(prefix+name+"_ms", milli) }
	s := LatencySummary{Mean: at("avg"), Min: at("min"), Max: at("max"), P50: at("p50"), P90: at("p90"), P95: at("p95"), P99: at("p99")}
	if s.Mean != nil || s.P95 != nil || s.P99 != nil {
		s.Count = count
	}
	return s
}

// into adds the row to the report of its run.
func (r *csvCells) into(reports []BenchReport) []BenchReport {
	run := r.text("run_id")
	i := slices.IndexFunc(reports, func(report BenchReport) bool { return report.Run == run })
	if i < 0 {
		reports = append(reports, r.report(run))
		i = len(reports) - 1
	}
	c := r.caseReport()
	if settings := r.engine(); r.err == nil && settings.differ(*reports[i].Plan.Profile.Engine) {
		// Each restart of the engine is a curve of its own.
		c.Case.Name += fmt.Sprintf("-s%s-b%s", r.text("max_num_seqs"), r.text("max_num_batched_tokens"))
		c.Validity = refused("engine_changed", "the engine ran with other settings than in the run's first case: cut the rows into a file for each setting")
	}
	for n, name := 2, c.Case.Name; slices.ContainsFunc(reports[i].Cases, func(other CaseReport) bool { return other.Case.Name == c.Case.Name }); n++ {
		c.Case.Name = fmt.Sprintf("%s-%d", name, n)
	}
	reports[i].Cases = append(reports[i].Cases, c)
	reports[i].Plan.Cases = append(reports[i].Plan.Cases, c.Case)
	return reports
}

func (r *csvCells) report(run string) BenchReport {
	engine := r.engine()
	return BenchReport{
		TypeMeta: Meta(KindBenchReport), Run: run, Cases: []CaseReport{},
		Plan: BenchPlan{
			TypeMeta: Meta(KindBenchPlan), Run: run, Target: BenchTarget{API: APICompletions}, SLOs: []BenchSLO{},
			Profile: &BenchProfile{Name: r.text("profile"), Hypothesis: r.text("profile_hypothesis"), Engine: &engine},
		},
		Target: TargetFacts{MaxModelLen: r.optional("max_model_len")},
	}
}

func (r *csvCells) engine() EngineSettings {
	return EngineSettings{
		GPUMemoryUtilization: r.number("gpu_memory_utilization", 1), MaxModelLen: r.optional("max_model_len"),
		MaxNumSeqs: r.optional("max_num_seqs"), MaxNumBatchedTokens: r.optional("max_num_batched_tokens"),
	}
}

func (s EngineSettings) differ(other EngineSettings) bool {
	return csvNumber(s.GPUMemoryUtilization, 1) != csvNumber(other.GPUMemoryUtilization, 1) || csvInt(s.MaxModelLen) != csvInt(other.MaxModelLen) ||
		csvInt(s.MaxNumSeqs) != csvInt(other.MaxNumSeqs) || csvInt(s.MaxNumBatchedTokens) != csvInt(other.MaxNumBatchedTokens)
}

func refused(code, message string) Validity {
	return Validity{Reasons: []BenchFinding{{Code: code, Message: message}}, Warnings: []BenchFinding{}}
}

func (r *csvCells) caseReport() CaseReport {
	stream := r.text("stream") == "true"
	c := BenchCase{PromptTokens: r.count("prompt_tokens"), OutputTokens: r.count("max_tokens"), Concurrency: r.count("concurrency"), Stream: &stream}
	c.Name = fmt.Sprintf("%d-%d-c%d", c.PromptTokens, c.OutputTokens, c.Concurrency)
	report := CaseReport{
		Case:              c,
		Counts:            CaseCounts{Started: r.count("requests_total"), Succeeded: r.count("successes"), Failed: r.count("errors"), Completed: r.count("successes"), Errors: map[ErrorClass]int{}, ErrorSamples: map[ErrorClass]string{}},
		RequestsPerSecond: r.rate("successful_rps"), PromptTokensPerSecond: r.rate("actual_prompt_tokens_per_sec"), OutputTokensPerSecond: r.rate("actual_output_tokens_per_sec"),
		Server: map[string]*ServerSeries{},
	}
	report.Window.Seconds = r.window()
	report.Window.Steady = true
	if start, err := time.Parse(time.RFC3339, r.text("timestamp")); err == nil {
		report.Window.Start, report.Window.End = start, start.Add(seconds(report.Window.Seconds))
	}
	report.Latency.E2E = r.latency("latency_", report.Counts.Completed)
	report.Latency.TTFT = r.latency("ttft_", report.Counts.Completed)
	report.Latency.TPOT = r.latency("time_per_output_token_", report.Counts.Completed)
	r.server(&report)
	report.Validity = r.validity(report.Counts)
	return report
}

// window is the time that the row's counts are of: a count by its rate.
func (r *csvCells) window() float64 {
	for _, one := range [][2]string{{"requests_total", "attempted_rps"}, {"successes", "successful_rps"}} {
		if rate := r.rate(one[1]); rate > 0 && r.count(one[0]) > 0 {
			return float64(r.count(one[0])) / rate
		}
	}
	return 0
}

func (r *csvCells) server(report *CaseReport) {
	for _, signal := range BenchSignals() {
		report.Server[signal] = nil
	}
	samples := int(report.Window.Seconds / csvScrape)
	for signal, column := range map[string]string{SignalRunning: "requests_running", SignalWaiting: "requests_waiting", SignalKVCacheUsage: "kv_cache_pct"} {
		scale := 1.0
		if signal == SignalKVCacheUsage {
			scale = percent
		}
		if mean := r.number(column+"_avg", scale); mean != nil {
			report.Server[signal] = &ServerSeries{Query: column + "_avg", Samples: samples, Mean: mean, Max: r.number(column+"_max", scale)}
		}
	}
	for signal, column := range map[string]string{SignalGenerationTokens: "server_output_tokens_total", SignalPreemptions: "preemptions_total", SignalPrefixHits: "prefix_cache_hits_total"} {
		if total := r.number(column, 1); total != nil {
			report.Server[signal] = &ServerSeries{Query: column, Samples: samples, Increase: total}
		}
	}
}

// validity is the row's own verdict, and where it states none or says only that
// the case ended, what its errors say.
func (r *csvCells) validity(counts CaseCounts) Validity {
	if status := r.text("case_status"); status != "" && status != csvCompleted {
		code := r.text("error_type")
		if code == "" {
			code = status
		}
		return refused(code, strings.TrimSuffix(status+": "+r.text("error_message"), ": "))
	}
	if counts.ErrorRate() > csvErrorShare {
		return refused("errors", fmt.Sprintf("%d of %d requests failed", counts.Failed, counts.Started))
	}
	return Validity{Valid: true, Reasons: []BenchFinding{}, Warnings: []BenchFinding{}}
}
