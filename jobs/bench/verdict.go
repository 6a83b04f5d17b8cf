package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
)

// The limits of the verdict.
const (
	// littleLimit is the relative error of Little's law above which a case is
	// warned of.
	littleLimit = 0.05
	// cachedLimit and cachedNotice are shares of the prompt tokens that came out
	// of the prefix cache: the prompts share nothing on purpose, so a hit means
	// that the server did less work than the case says.
	cachedLimit, cachedNotice = 0.05, 0.01
	// windowLives is how many median requests should fit into a window.
	windowLives = 3
)

// reasonInterrupted is the code of a case that was stopped with its process.
const reasonInterrupted = "interrupted"

// circumstances are what the report itself does not say.
type circumstances struct {
	interrupted, hopeless bool
	buffered              int               // of Completed
	exact                 bool              // the prompts' lengths
	missing               map[string]string // signal to query
	prometheus            error
}

// verdict judges a case.
func verdict(plan record.BenchPlan, report record.CaseReport, c circumstances) record.Validity {
	v := record.Validity{Reasons: []record.BenchFinding{}, Warnings: []record.BenchFinding{}}
	reason := func(code, format string, args ...any) {
		v.Reasons = append(v.Reasons, record.BenchFinding{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	warn := func(code, format string, args ...any) {
		v.Warnings = append(v.Warnings, record.BenchFinding{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if c.interrupted {
		reason(reasonInterrupted, "the run was stopped in this case")
	}
	if c.hopeless {
		reason("hopeless", "the case was ended early: no request succeeded for %v", hopelessTime)
	}
	counts := report.Counts
	switch failed, total := failures(counts); {
	case exceeds(failed, total, plan.MaxErrorRate):
		reason("errors", "%d of %d requests failed (%s), the plan allows %.3g %%", failed, total, classes(counts.Errors), 100*plan.MaxErrorRate)
	case failed > 0:
		warn("errors", "%d of %d requests failed (%s)", failed, total, classes(counts.Errors))
	}
	if counts.Completed == 0 {
		reason("no_requests", "no request was completed in the window")
	}
	if backlog := report.Backlog; backlog != nil && backlog.Drift == string(stats.DriftOver) {
		reason("over_saturated", "requests pile up: %.3g in flight at the window's beginning, %.3g at its end: latencies are those of the time that it ran, not of the load", backlog.First, backlog.Last)
	} else if backlog != nil && backlog.Drift == string(stats.DriftAtCapacity) {
		warn("at_capacity", "requests in flight wander up to %.3g as they do at the server's capacity: a longer run may show other latencies", backlog.Peak)
	} else if !report.Window.Steady && !c.interrupted && !c.hopeless && report.Stopped == nil {
		reason("never_steady", "the load was not steady before the case ended: lengthen the warm-up or the duration")
	}
	offered(report, warn)
	health(report, reason, warn)
	tokens(plan, report, c, reason, warn)
	server(plan, report, c, reason, warn)
	if law := report.Little; law.RelativeError != nil && *law.RelativeError > littleLimit {
		warn("littles_law", "in flight %.2f, throughput x latency %.2f: they differ by %.0f %%", *law.InFlight, *law.Product, 100**law.RelativeError)
	}
	if p50 := report.Latency.E2E.P50; p50 != nil && report.Window.Seconds < windowLives**p50 {
		warn("short_window", "the window of %.3gs holds fewer than %d requests after another (median %.3gs)", report.Window.Seconds, windowLives, *p50)
	}
	if report.Latency.E2E.LowN && counts.Completed > 0 {
		warn("low_n", "%d requests: p99 is the slowest of them", counts.Completed)
	}
	v.Valid = len(v.Reasons) == 0
	return v
}

type finding func(code, format string, args ...any)

// offered marks an open loop that did not send what it was asked to: its rate
// and plain latencies are those of a lower load.
func offered(report record.CaseReport, warn finding) {
	load := report.Offered
	if load == nil || load.HeldBack == 0 && load.Sent >= load.Due {
		return
	}
	warn("rate_not_achieved", "of %d requests due, %d were sent late and %d not at all, with %d in flight at most (max_in_flight %d): only the effective latencies hold the wait",
		load.Due, load.HeldBack, max(load.Due-load.Sent, 0), load.PeakInFlight, load.MaxInFlight)
}

func health(report record.CaseReport, reason, warn finding) {
	switch client := report.Client; {
	case client.Limited:
		reason("client_limited", "the client was the limit: its ticks were late by %s (median) and %s (p99), its requests by %s (p99)",
			milli(client.TickLagP50Seconds), milli(client.TickLagP99Seconds), milli(client.ScheduleSlipP99Seconds))
	case late(report):
		warn("client_late", "1 %% of the client's ticks were late by %s or more: the highest latencies may be overstated by that", milli(client.TickLagP99Seconds))
	case client.ThrottledPeriods != nil && *client.ThrottledPeriods > 0:
		warn("client_throttled", "the client was throttled by its CPU limit %d times", *client.ThrottledPeriods)
	}
}

func tokens(plan record.BenchPlan, report record.CaseReport, c circumstances, reason, warn finding) {
	counts := report.Counts
	if n := counts.PromptMismatch; n > 0 {
		// Text whose tokens nobody counted has no exact length, so there it is
		// only worth knowing.
		note := reason
		if !c.exact {
			note = warn
		}
		note("prompt_length", "the server counts another number of prompt tokens than was asked for in %d of %d requests", n, counts.Completed)
	}
	if counts.TokensEstimated > 0 {
		warn("tokens_estimated", "%d of %d replies had no usage: their chunks were counted as tokens", counts.TokensEstimated, counts.Completed)
	}
	if c.buffered > 0 {
		warn("buffered", "%d of %d streams came in one piece: something holds them back, TTFT and TPOT are not the server's", c.buffered, counts.Completed)
	}
}

func server(plan record.BenchPlan, report record.CaseReport, c circumstances, reason, warn finding) {
	if plan.Prometheus == nil {
		return
	}
	if c.prometheus != nil && !c.interrupted {
		note := warn
		if len(plan.Prometheus.Required) > 0 {
			note = reason
		}
		note("prometheus", "%s", failure.Clean(c.prometheus.Error()))
		return
	}
	for _, signal := range record.BenchSignals() {
		query, absent := c.missing[signal]
		switch {
		case !absent:
		case slices.Contains(plan.Prometheus.Required, signal):
			reason("missing_signal", "Prometheus has no %s for this window: %s", signal, query)
		default:
			warn("missing_signal", "Prometheus has no %s for this window: %s", signal, query)
		}
	}
	if replicas := report.Server[record.SignalReplicas]; replicas != nil && *replicas.Min != *replicas.Max {
		reason("replicas_changed", "the number of replicas went from %.0f to %.0f within the window", *replicas.Min, *replicas.Max)
	}
	if preempted := report.Server[record.SignalPreemptions]; preempted != nil && *preempted.Increase > 0 {
		warn("preemptions", "the server preempted %.0f requests: its KV cache was full", *preempted.Increase)
	}
	hits, queries := report.Server[record.SignalPrefixHits], report.Server[record.SignalPrefixQueries]
	if hits == nil || queries == nil || *queries.Increase <= 0 {
		return
	}
	switch share := *hits.Increase / *queries.Increase; {
	case report.Case.Mix().Shares():
		// On purpose; the report holds the numbers.
	case share > cachedLimit:
		reason("prefix_cache", "%.0f %% of the prompt tokens came out of the prefix cache: other traffic, or an earlier run with the same seed", 100*share)
	case share > cachedNotice:
		warn("prefix_cache", "%.1f %% of the prompt tokens came out of the prefix cache", 100*share)
	}
}

// classes lists errors by class, the most frequent first.
func classes(errors map[record.ErrorClass]int) string {
	names := make([]record.ErrorClass, 0, len(errors))
	for name := range errors {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b record.ErrorClass) int {
		if errors[a] != errors[b] {
			return errors[b] - errors[a]
		}
		return strings.Compare(string(a), string(b))
	})
	text := make([]string, len(names))
	for i, name := range names {
		text[i] = fmt.Sprintf("%s %d", name, errors[name])
	}
	if len(text) == 0 {
		return "before the window"
	}
	return strings.Join(text, ", ")
}

func milli(seconds *float64) string {
	if seconds == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f ms", 1000**seconds)
}
