package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
	"github.com/kubectl-inference/kubectl-inference/jobs/prom"
)

// Names of the events of a run, besides record.EventProgress.
const (
	// EventTarget comes once the server answered its first request.
	EventTarget = "target"
	// EventCase comes when a case is over; its field "report" is the CaseReport.
	EventCase = "case"
	// EventWait says what the run waits for outside of a case.
	EventWait = "wait"
)

// Deps are what a run needs of its process. Zero fields have a default.
type Deps struct {
	// HTTP sends the load; default what the plan's target says. Prometheus sends
	// the queries; default openai.NewHTTP.
	HTTP, Prometheus *http.Client
	// Now is the clock of every stamp; default time.Now.
	Now func() time.Time
	// Emit receives the events, one at a time; default none.
	Emit func(record.Event)
	// Records receives the request records (JSON lines); default none.
	Records io.Writer
	// Getenv looks up the variables that the plan names for secrets.
	Getenv func(string) string
	// ToolVersion goes into the documents.
	ToolVersion string
	// Cgroup is the process's own cgroup v2 directory, for cpu.stat; default
	// none, which leaves throttling unknown.
	Cgroup fs.FS
	// Pod names the process in the report. Before is what an earlier process of
	// the same run left; its finished cases are kept and not repeated.
	Pod    string
	Before *record.BenchReport
	// Checkpoint keeps the report before the first case and after each one;
	// default none. An error before the first case ends the run, later ones are
	// told: what was measured may still be kept at the end.
	Checkpoint func(context.Context, record.BenchReport) error
}

func (d Deps) withDefaults(plan record.BenchPlan) Deps {
	if d.Prometheus == nil && (plan.Prometheus == nil || plan.Prometheus.Auth == nil) {
		d.Prometheus = openai.NewHTTP(plan.Prometheus != nil && plan.Prometheus.Insecure)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Emit == nil {
		d.Emit = func(record.Event) {}
	}
	if d.Records == nil {
		d.Records = io.Discard
	}
	if d.Checkpoint == nil {
		d.Checkpoint = func(context.Context, record.BenchReport) error { return nil }
	}
	if d.Getenv == nil {
		d.Getenv = func(string) string { return "" }
	}
	return d
}

// run is one run under way.
type run struct {
	Deps
	plan    record.BenchPlan
	client  *openai.Client
	prom    *prom.Client
	model   string
	prompts prompts
	seed    uint64    // of the run's prompts
	base    time.Time // the zero of the records' times
	records *bufio.Writer
}

// Run carries out a plan. The report is valid, and holds every case that was
// started, also where the error is not nil: kind Differs means that a case
// failed more requests than the plan allows, Interrupted that ctx was cancelled.
// Before the first case one request is sent; its failure is Unreachable,
// NotFound, Denied or Usage, and then nothing was measured.
func Run(ctx context.Context, plan record.BenchPlan, deps Deps) (record.BenchReport, error) {
	deps = deps.withDefaults(plan)
	report := record.BenchReport{
		TypeMeta: record.Meta(record.KindBenchReport), Run: plan.Run, ToolVersion: deps.ToolVersion,
		Plan: plan, Cases: []record.CaseReport{},
	}
	if err := plan.Validate(); err != nil {
		return report, err
	}
	r := &run{Deps: deps, plan: plan, seed: workload.Seed(plan.Seed, plan.Run), base: deps.Now(), records: bufio.NewWriterSize(deps.Records, 64<<10)}
	report.Started, report.Finished = wall(r.base), wall(r.base)
	if err := r.connect(ctx); err != nil {
		return report, err
	}
	if err := r.writeLine(record.NewRequestHeader(plan.Run, deps.ToolVersion, r.base)); err != nil {
		return report, err
	}
	target, err := r.probe(ctx)
	report.Target = target
	if err != nil {
		return report, err
	}
	r.resume(&report)
	if err := r.Checkpoint(ctx, report); err != nil {
		return report, err
	}
	if plan.FindKnee != nil {
		err := r.findKnee(ctx, &report)
		return report, err
	}
	for index := range plan.Cases {
		if finished(report, plan.Cases[index].Name) {
			continue
		}
		if why := saturatedBefore(plan, plan.Cases[index], report.Cases); why != "" {
			skipped := record.SkippedCase{Case: plan.Cases[index].Name, Code: record.StopSaturated, Message: why}
			report.Skipped = append(report.Skipped, skipped)
			report.Incomplete = len(report.Cases)+len(report.Skipped) < len(plan.Cases)
			r.emit(record.Info, EventCase, fmt.Sprintf("case %d/%d %s: left out: %s", index+1, len(plan.Cases), skipped.Case, why), map[string]any{"skipped": skipped})
			continue
		}
		one, err := r.runCase(ctx, index)
		report.Finished = wall(r.Now())
		report.Cases = append(report.Cases, one)
		report.Incomplete = ctx.Err() != nil || len(report.Cases)+len(report.Skipped) < len(plan.Cases)
		r.emitCase(index, one)
		if err != nil {
			return report, err
		}
		r.keep(ctx, report)
		if ctx.Err() != nil {
			return report, failure.New(failure.Interrupted, "", "bench %s: stopped in case %q: %w", plan.Run, one.Case.Name, context.Cause(ctx))
		}
	}
	return report, overLimit(plan, report.Cases)
}

// shapes are the cases by their lengths: those of a search are all alike.
func (r *run) shapes() []record.BenchCase {
	if r.plan.FindKnee != nil {
		one := r.plan.FindKnee.Case
		one.Name = "find-knee"
		return []record.BenchCase{one}
	}
	return r.plan.Cases
}

// connect makes the clients, with the secrets that the plan names.
func (r *run) connect(ctx context.Context) error {
	secret := func(name, what string) (string, error) {
		if name == "" {
			return "", nil
		}
		value := r.Getenv(name)
		if value == "" {
			return "", failure.New(failure.Usage, fmt.Sprintf("set the environment variable %s", name), "read %s: %s is empty", what, name)
		}
		return value, nil
	}
	key, err := secret(r.plan.Target.APIKeyEnv, "API key")
	if err != nil {
		return err
	}
	if r.HTTP == nil {
		transport := openai.Transport{HTTP: r.plan.Target.HTTP, Insecure: r.plan.Target.Insecure}
		authority, err := secret(r.plan.Target.CAEnv, "CA certificates")
		if err != nil {
			return err
		}
		for _, pem := range []string{r.plan.Target.CA, authority} {
			if pem != "" {
				transport.CA = append(transport.CA, pem)
			}
		}
		if r.HTTP, err = transport.Client(); err != nil {
			return err
		}
	}
	r.client = &openai.Client{
		HTTP: r.HTTP, URL: r.plan.Target.URL, Key: key, Headers: r.plan.Target.Headers, Now: r.Now,
		Timeout: duration(r.plan.RequestTimeoutSeconds), Idle: duration(r.plan.IdleTimeoutSeconds),
	}
	if r.plan.Prometheus == nil {
		return nil
	}
	token, err := secret(r.plan.Prometheus.TokenEnv, "Prometheus token")
	if err != nil {
		return err
	}
	r.prom = &prom.Client{HTTP: r.Deps.Prometheus, URL: r.plan.Prometheus.URL, Token: token}
	if r.plan.Prometheus.Auth == nil {
		return nil
	}
	auth, err := r.plan.Prometheus.Auth.Resolve(r.Getenv)
	if err != nil {
		return err
	}
	r.prom.Parameters = auth.Parameters
	if r.prom.HTTP == nil {
		r.prom.HTTP, err = prom.NewHTTP(ctx, auth, r.plan.Prometheus.Insecure)
	}
	return err
}

func (r *run) emit(level record.Level, name, message string, fields map[string]any) {
	r.Emit(record.Event{Time: wall(r.Now()), Level: level, Name: name, Message: message, Fields: fields})
}

func (r *run) emitCase(index int, report record.CaseReport) {
	level := record.Info
	if !report.Validity.Valid {
		level = record.Warning
	}
	r.emit(level, EventCase, caseLine(index, len(r.plan.Cases), report), map[string]any{"report": report})
}

func caseLine(index, total int, report record.CaseReport) string {
	var line strings.Builder
	fmt.Fprintf(&line, "case %d/%d %s: %.2f req/s, %.0f output tok/s", index+1, total, report.Case.Name, report.RequestsPerSecond, report.OutputTokensPerSecond)
	for _, one := range []struct {
		name  string
		value *float64
	}{
		{"TTFT p50", report.Latency.TTFT.P50}, {"TTFT p99", report.Latency.TTFT.P99},
		{"E2E p50", report.Latency.E2E.P50}, {"E2E p99", report.Latency.E2E.P99},
	} {
		if one.value != nil {
			fmt.Fprintf(&line, ", %s %.3gs", one.name, *one.value)
		}
	}
	fmt.Fprintf(&line, ", %d requests", report.Counts.Started)
	if report.Counts.Failed > 0 {
		fmt.Fprintf(&line, ", %d FAILED (%s)", report.Counts.Failed, classes(report.Counts.Errors))
	}
	if report.Stopped != nil {
		fmt.Fprintf(&line, "; ended early: %s", report.Stopped.Message)
	}
	for _, reason := range report.Validity.Reasons {
		fmt.Fprintf(&line, "; not valid: %s", reason.Message)
	}
	return line.String()
}

// writeLine writes one line of the records.
func (r *run) writeLine(document any) error {
	line, err := json.Marshal(document)
	if err == nil {
		_, err = r.records.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write request records: %w", err)
	}
	return nil
}

// overLimit is the error of a run whose cases failed more requests than allowed.
func overLimit(plan record.BenchPlan, cases []record.CaseReport) error {
	var over []string
	for _, one := range cases {
		if failed, total := failures(one.Counts); exceeds(failed, total, plan.MaxErrorRate) {
			over = append(over, fmt.Sprintf("%s failed %d of %d requests (%s)", one.Case.Name, failed, total, classes(one.Counts.Errors)))
		}
	}
	if len(over) == 0 {
		return underGoodput(plan, cases)
	}
	return failure.New(failure.Differs, fmt.Sprintf("the report is complete and marks these cases; the plan allows %.3g %% of failed requests", 100*plan.MaxErrorRate),
		"bench %s: %s", plan.Run, strings.Join(over, "; "))
}

// underGoodput is the error of a run in which a case had fewer good requests than
// the plan asks for. Objectives alone are no reason: a sweep is meant to go
// beyond them.
func underGoodput(plan record.BenchPlan, cases []record.CaseReport) error {
	var under []string
	for _, one := range cases {
		if share := one.Goodput.Share; plan.MinGoodput > 0 && share != nil && *share < plan.MinGoodput {
			under = append(under, fmt.Sprintf("%s: %.3g %% of the requests were good", one.Case.Name, 100**share))
		}
	}
	if len(under) == 0 {
		return nil
	}
	return failure.New(failure.Differs, "the report is complete; the objectives are missed at this load", "bench %s: fewer than %.4g %%: %s", plan.Run, 100*plan.MinGoodput, strings.Join(under, "; "))
}

// failures are the failed requests and their total, without those that were
// cancelled with the run. Where the server is stuck from the start, no request
// is sent in the window, and those before it decide.
func failures(counts record.CaseCounts) (failed, total int) {
	if counts.Started == 0 {
		return counts.WarmupFailed, counts.WarmupStarted
	}
	cancelled := counts.Errors[record.ErrorCancelled]
	return counts.Failed - cancelled, counts.Started - cancelled
}

func exceeds(failed, total int, limit float64) bool {
	return failed > 0 && float64(failed) > limit*float64(total)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// wall is the wall-clock part of a time, for documents.
func wall(t time.Time) time.Time { return t.UTC().Round(0) }
