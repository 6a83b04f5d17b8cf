package record

import (
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// KindBenchReport is the kind of a BenchReport.
const KindBenchReport = "BenchReport"

// BenchReport is what a measuring run found. Every case carries its window, its
// sample counts and its own verdict, so that it can be used alone.
type BenchReport struct {
	TypeMeta
	Run         string      `json:"run"`
	ToolVersion string      `json:"tool_version"`
	Started     time.Time   `json:"started"`
	Finished    time.Time   `json:"finished"`
	Plan        BenchPlan   `json:"plan"`
	Target      TargetFacts `json:"target"`
	// Cases are in the order in which they ran. A run that was ended early has
	// fewer than its plan.
	Cases []CaseReport `json:"cases"`
	// Skipped are the cases of the plan that a stop rule left out.
	Skipped []SkippedCase `json:"skipped,omitempty"`
	// Knee is the answer of the plan's search; nil without one.
	Knee *KneeResult `json:"knee,omitempty"`
	// Incomplete is true while cases of the plan are missing: the run is under
	// way, or was ended early.
	Incomplete bool `json:"incomplete,omitempty"`
	// Attempts are the processes that the run took, where a pod was replaced.
	Attempts []BenchAttempt `json:"attempts,omitempty"`
}

// BenchAttempt is one process of a run. The next goes on with the case in which
// it ended, from its beginning and with prompts of its own: those of the lost
// case are in the server's prefix cache.
type BenchAttempt struct {
	// Pod is the pod's name, or "".
	Pod     string    `json:"pod"`
	Started time.Time `json:"started"`
	// CasesBefore is the number of cases that were finished when it started.
	CasesBefore int `json:"cases_before"`
}

// TargetFacts is what the server said about itself before the first case.
type TargetFacts struct {
	// Model is the id that the requests name.
	Model string `json:"model"`
	// MaxModelLen is the longest prompt and output together, in tokens.
	MaxModelLen *int `json:"max_model_len"`
	// Server is the Server header.
	Server string `json:"server"`
	// ProbeSeconds is the time of the one request that was sent first.
	ProbeSeconds *float64 `json:"probe_seconds"`
	// Protocol is the version of HTTP that the server answered with. Phases are
	// the parts of the first exchange: how far away the server is.
	Protocol string      `json:"protocol,omitempty"`
	Phases   *PathPhases `json:"phases,omitempty"`
	// PromptsBy says what made the prompts' lengths exact: "token_ids", or for
	// text "tokenize" (the server's /tokenize); "usage" is text of words whose
	// number was corrected by one reply's usage, and may be off.
	PromptsBy string `json:"prompts_by,omitempty"`
}

// PathPhases are the parts of one exchange over a new connection in seconds;
// null where there was no such part.
type PathPhases struct {
	DNS     *float64 `json:"dns_seconds"`
	Connect *float64 `json:"connect_seconds"`
	TLS     *float64 `json:"tls_seconds"`
	// Wait is from the request's last byte to the response's first.
	Wait *float64 `json:"wait_seconds"`
}

// OfferedLoad says what an open loop asked for and what became of it.
type OfferedLoad struct {
	// Due are the requests due in the window, RequestsPerSecond their rate. Sent
	// are those of them that were sent; the rest were still held back when the
	// window ended.
	Due               int     `json:"due"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	Sent              int     `json:"sent"`
	// HeldBack are those that were sent late because MaxInFlight were in flight.
	HeldBack    int `json:"held_back"`
	MaxInFlight int `json:"max_in_flight"`
	// PeakInFlight is the largest number in flight in the whole case.
	PeakInFlight int `json:"peak_in_flight"`
}

// CaseReport is one operating point as measured.
type CaseReport struct {
	Case BenchCase `json:"case"`
	// Window is the steady window W that everything below is about. It starts
	// once the warm-up is over, in-flight has reached 95 % of the target and
	// every request of the first wave has its first token; it ends when the
	// senders stop. Ramp and drain are outside.
	Window CaseWindow `json:"window"`
	Counts CaseCounts `json:"counts"`
	// Offered is of an open loop; nil for a closed one.
	Offered *OfferedLoad `json:"offered,omitempty"`
	// RequestsPerSecond is Counts.Completed / W. The interval is Student's t at
	// 95 % over the rates of equal parts of W, and at least a request more and
	// less; nil where W holds too few.
	RequestsPerSecond     float64  `json:"requests_per_second"`
	RequestsPerSecondLow  *float64 `json:"requests_per_second_low"`
	RequestsPerSecondHigh *float64 `json:"requests_per_second_high"`
	// StartedPerSecond is the same rate by arrival: requests sent in W that
	// succeeded in the end / W.
	StartedPerSecond float64 `json:"started_per_second"`
	// EdgeCorrectedPerSecond counts each request that succeeded for the share of
	// its time, send to end, that lies in W. It has no bias where W holds few
	// requests after another and the slots move in waves, as the other rates do.
	EdgeCorrectedPerSecond float64 `json:"edge_corrected_requests_per_second"`
	// OutputTokensPerSecond counts the tokens whose chunk arrived in W, also of
	// requests that cross its edges. PromptTokensPerSecond counts the prompts
	// whose first token arrived in W.
	OutputTokensPerSecond float64       `json:"output_tokens_per_second"`
	PromptTokensPerSecond float64       `json:"prompt_tokens_per_second"`
	Latency               CaseLatencies `json:"latency"`
	Goodput               Goodput       `json:"goodput"`
	// Objectives counts each objective of the plan by itself.
	Objectives []ObjectiveCount `json:"objectives,omitempty"`
	// Backlog is of an open loop of a steady rate; nil otherwise.
	Backlog *Backlog `json:"backlog,omitempty"`
	// Stopped is the rule that ended the case early; nil where its time did.
	Stopped *BenchFinding `json:"stopped,omitempty"`
	// Server holds the server's own series over W, by signal (BenchSignals). A
	// signal that the server does not have, or that was not asked for, is null.
	Server map[string]*ServerSeries `json:"server"`
	Client ClientHealth             `json:"client"`
	Little LittlesLaw               `json:"littles_law"`
	// Validity says whether the case may be used for advice.
	Validity Validity `json:"validity"`
}

// CaseWindow is a stretch of time; the two times are only for aligning other
// data, Seconds is from a monotonic clock.
type CaseWindow struct {
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Seconds float64   `json:"seconds"`
	// Steady is false where in-flight never held its target; the window is then
	// the time after the warm-up.
	Steady bool `json:"steady"`
	// RampSeconds is from the first send to Start, DrainSeconds from End to the
	// end of the last request.
	RampSeconds  float64 `json:"ramp_seconds"`
	DrainSeconds float64 `json:"drain_seconds"`
}

// CaseCounts counts requests. Started = Succeeded + Failed.
type CaseCounts struct {
	// Started are the requests sent in the window. Succeeded and Failed are
	// those of them that did so in the end, drain included.
	Started   int `json:"started"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	// Completed are the requests that succeeded in the window, whenever sent.
	Completed int `json:"completed"`
	// WarmupStarted and WarmupFailed are the requests sent before the window.
	WarmupStarted int `json:"warmup_started"`
	WarmupFailed  int `json:"warmup_failed"`
	// TokensEstimated are the requests of Completed whose reply had no usage,
	// so that its chunks were counted instead of its tokens.
	TokensEstimated int `json:"tokens_estimated"`
	// PromptMismatch are the requests of Completed whose usage states another
	// prompt length than the case asks for.
	PromptMismatch int `json:"prompt_mismatch"`
	// Errors are the failed requests by class.
	Errors map[ErrorClass]int `json:"errors"`
	// ErrorSamples holds the first message of each class.
	ErrorSamples map[ErrorClass]string `json:"error_samples"`
}

// ErrorRate is the share of the started requests that failed; 0 for none.
func (c CaseCounts) ErrorRate() float64 {
	if c.Started == 0 {
		return 0
	}
	return float64(c.Failed) / float64(c.Started)
}

// CaseLatencies are the latencies of successful requests. A sample belongs to
// the window in which the event that ends it falls: the first token for TTFT,
// the end of the request for TPOT, E2E and max stall, the later chunk for ICL
// and ITL. So a request that crosses an edge counts once, and the drain, which
// runs at a lower load, does not count.
type CaseLatencies struct {
	// TTFT is from send to the first token-bearing chunk. The _eff latencies
	// are from the moment the request was due, so waiting in the client counts.
	TTFT    LatencySummary `json:"ttft"`
	TTFTEff LatencySummary `json:"ttft_eff"`
	// TTFOT is from send to the first token that is not reasoning.
	TTFOT LatencySummary `json:"ttfot"`
	// TPOT is (last token - first token) / (n - tokens of the first chunk).
	TPOT LatencySummary `json:"tpot"`
	// ICL is the gap of consecutive token-bearing chunks, pooled.
	ICL LatencySummary `json:"icl"`
	// ITL is that gap per token, known only where chunks state their tokens.
	ITL LatencySummary `json:"itl"`
	// E2E is from send to the last token or the finish reason.
	E2E    LatencySummary `json:"e2e"`
	E2EEff LatencySummary `json:"e2e_eff"`
	// MaxStall is the longest gap of each request.
	MaxStall LatencySummary `json:"max_stall"`
}

// LatencySummary describes samples in seconds. Percentiles are nearest rank:
// the smallest sample with at least that share of the samples at or below.
// Without samples every number is null.
type LatencySummary struct {
	Count int      `json:"count"`
	Mean  *float64 `json:"mean_seconds"`
	Min   *float64 `json:"min_seconds"`
	Max   *float64 `json:"max_seconds"`
	P50   *float64 `json:"p50_seconds"`
	P90   *float64 `json:"p90_seconds"`
	P95   *float64 `json:"p95_seconds"`
	P99   *float64 `json:"p99_seconds"`
	// P99Low and P99High are the order statistics that hold the 99th percentile
	// at 95 %; nil where the samples are too few to bound that side.
	P99Low  *float64 `json:"p99_low_seconds"`
	P99High *float64 `json:"p99_high_seconds"`
	// LowN is true where fewer than 100 samples make p99 the largest sample.
	LowN bool `json:"low_n"`
	// Histogram holds the samples for merging with other reports.
	Histogram *stats.Histogram `json:"histogram"`
}

// Goodput counts the requests started in the window that met every objective.
// Failed requests are not good.
type Goodput struct {
	// Good is nil where the plan has no objective.
	Good              *int     `json:"good"`
	RequestsPerSecond *float64 `json:"requests_per_second"`
	Share             *float64 `json:"share"`
}

// LittlesLaw is the self-check L = X R: mean in-flight against throughput times
// mean time in the system.
type LittlesLaw struct {
	InFlight *float64 `json:"in_flight"`
	Product  *float64 `json:"product"`
	// RelativeError is |InFlight - Product| / InFlight.
	RelativeError *float64 `json:"relative_error"`
}

// ClientHealth says whether the client itself could have been the limit.
type ClientHealth struct {
	// ScheduleSlipP99Seconds is the time from a request being due to its send,
	// without those that were held back by the limit of requests in flight.
	ScheduleSlipP99Seconds *float64 `json:"schedule_slip_p99_seconds"`
	// TickLagP50Seconds and the next two are how late a 10 ms ticker ran.
	TickLagP50Seconds *float64 `json:"tick_lag_p50_seconds"`
	TickLagP99Seconds *float64 `json:"tick_lag_p99_seconds"`
	TickLagMaxSeconds *float64 `json:"tick_lag_max_seconds"`
	GCPauseMaxSeconds *float64 `json:"gc_pause_max_seconds"`
	// ThrottledPeriods is the growth of the cgroup's nr_throttled; nil where the
	// process has no cgroup v2 CPU statistics.
	ThrottledPeriods *int64 `json:"throttled_periods"`
	// CPUSeconds is the process's CPU time in the window.
	CPUSeconds *float64 `json:"cpu_seconds"`
	// BytesPerSecond and ChunksPerSecond are what the client parsed.
	BytesPerSecond  float64 `json:"bytes_per_second"`
	ChunksPerSecond float64 `json:"chunks_per_second"`
	// Limited is true where the client was too slow to be believed.
	Limited bool `json:"limited"`
}

// Validity is the verdict on a case. Reasons are why it must not be used,
// Warnings what to keep in mind when it is.
type Validity struct {
	Valid    bool           `json:"valid"`
	Reasons  []BenchFinding `json:"reasons"`
	Warnings []BenchFinding `json:"warnings"`
}

// BenchFinding is a stable code for programs and a line for people.
type BenchFinding struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
