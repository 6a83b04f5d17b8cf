package record

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// The states of a case in the CSV's case_status.
const (
	csvCompleted = "completed"
	csvFailed    = "failed"
)

// csvRow is what a column is read from.
type csvRow struct {
	report BenchReport
	c      CaseReport
}

// csvColumn is one column of the CSV. Unknown is empty.
type csvColumn struct {
	name  string
	value func(csvRow) string
}

// WriteCSV writes one row for each case, in the 64 columns of the capacity
// platform that this project began with (Kelvinskell/
// ai-inference-capacity-engineering-platform): its names, its order, its units
// (milliseconds, percent, MiB). What the report does not know is empty.
//
// Where the definitions differ, ours hold: percentiles are nearest rank, counts
// and rates are of the steady window, gauges are summed over the replicas, and
// case_status is "failed" for a case that must not be used.
func (r BenchReport) WriteCSV(w io.Writer) error {
	columns := csvColumns()
	header := make([]string, len(columns))
	for i, column := range columns {
		header[i] = column.name
	}
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return err
	}
	for _, c := range r.Cases {
		row := make([]string, len(columns))
		for i, column := range columns {
			row[i] = column.value(csvRow{r, c})
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvColumns() []csvColumn {
	columns := []csvColumn{
		{"timestamp", func(r csvRow) string {
			return r.c.Window.Start.Add(-seconds(r.c.Window.RampSeconds)).UTC().Format(time.RFC3339)
		}},
		{"run_id", func(r csvRow) string { return r.report.Run }},
		{"profile", func(r csvRow) string { return r.profile().Name }},
		{"profile_hypothesis", func(r csvRow) string { return failure.Clean(r.profile().Hypothesis) }},
		{"stream", func(r csvRow) string { return strconv.FormatBool(r.report.Plan.Streams(r.c.Case)) }},
		{"prompt_tokens", func(r csvRow) string { return strconv.Itoa(r.c.Case.PromptTokens) }},
		{"max_tokens", func(r csvRow) string { return strconv.Itoa(r.c.Case.OutputTokens) }},
		{"gpu_memory_utilization", func(r csvRow) string { return csvNumber(r.engine().GPUMemoryUtilization, 1) }},
		{"max_model_len", func(r csvRow) string {
			if said := r.report.Target.MaxModelLen; said != nil {
				return csvInt(said)
			}
			return csvInt(r.engine().MaxModelLen)
		}},
		{"max_num_seqs", func(r csvRow) string { return csvInt(r.engine().MaxNumSeqs) }},
		{"max_num_batched_tokens", func(r csvRow) string { return csvInt(r.engine().MaxNumBatchedTokens) }},
		{"concurrency", func(r csvRow) string {
			if r.c.Case.Open() {
				return ""
			}
			return strconv.Itoa(r.c.Case.Concurrency)
		}},
		{"case_status", func(r csvRow) string {
			if r.c.Validity.Valid {
				return csvCompleted
			}
			return csvFailed
		}},
		{"error_type", func(r csvRow) string {
			for _, reason := range r.c.Validity.Reasons {
				return reason.Code
			}
			return ""
		}},
		{"error_message", func(r csvRow) string {
			var all []string
			for _, reason := range r.c.Validity.Reasons {
				all = append(all, failure.Clean(reason.Message))
			}
			return strings.Join(all, "; ")
		}},
	}
	columns = append(columns, csvCounts()...)
	columns = append(columns, csvLatencies()...)
	return append(columns, csvServer()...)
}

func (r csvRow) profile() BenchProfile {
	if r.report.Plan.Profile == nil {
		return BenchProfile{}
	}
	return *r.report.Plan.Profile
}

func (r csvRow) engine() EngineSettings {
	if engine := r.profile().Engine; engine != nil {
		return *engine
	}
	return EngineSettings{}
}

// per is a number per second of the window; nil for an empty window.
func (r csvRow) per(sum float64) *float64 {
	if r.c.Window.Seconds <= 0 {
		return nil
	}
	sum /= r.c.Window.Seconds
	return &sum
}

func csvInt(value *int) string {
	if value == nil {
		return ""
	}
	return strconv.Itoa(*value)
}

// csvNumber writes a value times scale with at most six decimals.
func csvNumber(value *float64, scale float64) string {
	if value == nil || math.IsNaN(*value) || math.IsInf(*value, 0) {
		return ""
	}
	return strconv.FormatFloat(math.Round(*value*scale*1e6)/1e6, 'f', -1, 64)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
