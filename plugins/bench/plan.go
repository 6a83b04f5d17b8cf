package bench

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
)

// place is where a target answers and where its own series are.
type place struct {
	url       string
	namespace string
	podRegex  string
	// source is the Prometheus to ask, nil for none.
	source *source
	// scaler is what scales the target, nil where nothing was found; unread says
	// what could not be listed to find it.
	scaler *scaler
	unread string
}

// required are the signals without which a case with Prometheus is not valid.
var required = []string{record.SignalWaiting, record.SignalRunning, record.SignalKVCacheUsage}

// plan turns the flags and the place into the document that decides what runs.
func (o *options) plan(at place, now time.Time) (record.BenchPlan, error) {
	slos, err := record.ParseSLOs(o.slos)
	if err != nil {
		return record.BenchPlan{}, err
	}
	target, err := o.benchTarget(at.url)
	if err != nil {
		return record.BenchPlan{}, err
	}
	plan := record.BenchPlan{
		TypeMeta: record.Meta(record.KindBenchPlan), Run: o.runName(now), Target: target, Cases: []record.BenchCase{},
		WarmupSeconds: o.warmup.Seconds(), DurationSeconds: o.duration.Seconds(), RequestTimeoutSeconds: o.requestTime.Seconds(), IdleTimeoutSeconds: o.idleTime.Seconds(),
		Temperature: o.temperature, Stream: o.stream, ContinuousUsage: o.eachUsage, Seed: o.seed, SLOs: slos, MaxErrorRate: o.errorRate,
	}
	if plan.Profile, err = o.benchProfile(); err != nil {
		return record.BenchPlan{}, err
	}
	for _, one := range o.loads {
		cases, err := one.cases(o.warmup)
		if err != nil {
			return record.BenchPlan{}, err
		}
		plan.Cases = append(plan.Cases, cases...)
	}
	if err := o.ending.apply(&plan, o.warmupGiven); err != nil {
		return record.BenchPlan{}, err
	}
	if at.source != nil {
		plan.Prometheus = &record.BenchPrometheus{URL: at.source.url, Insecure: at.source.insecure, Auth: at.source.auth, Namespace: at.namespace, PodRegex: at.podRegex,
			ScrapeLagSeconds: o.scrapeLag.Seconds(), StepSeconds: o.scrapes.Seconds(), Required: required}
	}
	return plan, plan.Validate()
}

// maxPlan is how much of a plan a Job can carry: it is one variable of the
// pod's environment, of which the kernel takes 128 KiB.
const maxPlan = 120 << 10

// checkSize refuses a plan that is too large for a Job.
func checkSize(plan record.BenchPlan) error {
	data, err := json.Marshal(plan)
	if err == nil && len(data) > maxPlan {
		err = failure.New(failure.Usage, "cut the trace with --duration, or send it from here with --local", "start job: the plan of %d KiB is more than the %d KiB that a Job carries", len(data)>>10, maxPlan>>10)
	}
	return err
}

// flagLoad is the load that the flags describe.
func (o *options) flagLoad(flags *pflag.FlagSet) error {
	one := load{PromptTokens: split(o.prompts...), OutputTokens: split(o.outputs...), Requests: o.requests}
	open := o.stages != "" || o.trace != "" || len(o.rates) > 0
	for _, name := range []string{"arrival", "burstiness", "max-in-flight"} {
		if !open && flags.Changed(name) {
			return failure.New(failure.Usage, "give --rate, --stages or --trace too", "read --%s: it is of an open loop", name)
		}
	}
	if !open || flags.Changed("concurrency") {
		one.Concurrency = split(o.concurrency...)
	}
	if open {
		one.Arrival = &arrival{Process: o.process, Stages: o.stages, Trace: o.trace, MaxInFlight: o.maxInFlight}
		if len(o.rates) > 0 {
			one.Arrival.Rate = split(o.rates...)
		}
		switch {
		case o.process == workload.Gamma:
			one.Arrival.Burstiness = o.burstiness
		case flags.Changed("burstiness"):
			return failure.New(failure.Usage, "give --arrival gamma too", "read --burstiness: it is of gamma arrivals")
		}
		if (o.stages != "" || o.trace != "") && flags.Changed("duration") {
			one.Duration = span(o.duration)
		}
	}
	if o.trace != "" {
		one.Arrival.TraceSpeed = o.traceSpeed
		if !flags.Changed("arrival") {
			one.Arrival.Process = ""
		}
		for _, name := range []string{"prompt-tokens", "output-tokens"} {
			if flags.Changed(name) {
				return failure.New(failure.Usage, "leave it out", "read --%s: the trace has the lengths", name)
			}
		}
		if !flags.Changed("warmup") {
			o.warmup = 0
		}
	}
	if o.shared.Tokens != 0 {
		one.SharedPrefix = &o.shared
	}
	if o.turns != 1 {
		one.Sessions = &sessions{Turns: o.turns, NewTokens: o.newTokens, Think: span(o.think), ThinkExponential: o.think > 0}
	}
	o.loads = []load{one}
	return nil
}

// unfitEnv is what the name of a variable cannot have.
var unfitEnv = regexp.MustCompile(`[^A-Za-z0-9]+`)

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

func (o *options) runName(now time.Time) string {
	if o.name != "" {
		return o.name
	}
	base := "url"
	if len(o.target) > 0 {
		parts := strings.Split(o.target[len(o.target)-1], "/")
		base = strings.Trim(unfit.ReplaceAllString(strings.ToLower(parts[len(parts)-1]), "-"), "-")
	}
	return strings.TrimRight(base[:min(len(base), 30)], "-") + "-" + now.UTC().Format("20060102-150405")
}
