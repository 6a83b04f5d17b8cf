// Package bench is the command that measures a target: a Job in the cluster
// sends the load, so that neither a laptop nor a port-forward is part of what
// is measured. --local runs the same load from here.
package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/workload"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const example = `  # The seed's concurrency profile against an InferenceService
  kubectl inference bench isvc/deepseek-r1-14b --concurrency 1,5,10,20,40 --prompt-tokens 1024 --output-tokens 128

  # The same as a preset, and what the presets cost
  kubectl inference bench isvc/deepseek-r1-14b --preset concurrency-saturation
  kubectl inference bench plan isvc/deepseek-r1-14b --preset output-length

  # Show what would run, and for how long
  kubectl inference bench isvc/deepseek-r1-14b --dry-run

  # Any OpenAI-compatible server, from here
  kubectl inference bench --local --url http://localhost:8000 --duration 30s

  # Open loop: Poisson arrivals at three rates, prompts and answers of varying length
  kubectl inference bench isvc/chat --rate 0.5,1,2 --prompt-tokens lognormal:1024:512 --output-tokens uniform:64:256

  # A day's ramp in ten minutes; a recorded trace at twice its speed
  kubectl inference bench isvc/chat --stages 1:2m,1-8:5m,8-1:3m
  kubectl inference bench isvc/chat --trace mooncake.jsonl --trace-speed 2 --duration 10m

  # Conversations of four turns by 20 users who think for 5 s, behind three system prompts
  kubectl inference bench isvc/chat --concurrency 20 --turns 4 --think 5s --shared-prefix-tokens 512 --shared-prefix-groups 3

  # The highest rate at which 99 of 100 answers take less than 30 s, in 40 minutes at most
  kubectl inference bench isvc/chat --find-knee --slo p99_e2e=30s --budget 40m

  # Three rounds in random order, each case only as long as its rate needs; exit code 3 below 99 % good
  kubectl inference bench isvc/chat --repeats 3 --stop-when-ci 5% --slo p99_e2e=30s --min-goodput 99%

  # Everything in a file
  kubectl inference bench plan -f - <<EOF
  url: http://gateway.example:8000
  warmup: 30s
  duration: 2m
  slos: [p99_e2e=30s]
  cases:
  - {prompt_tokens: [1024, 4096], output_tokens: 128, concurrency: [1, 5, 10]}
  - {name: burst, prompt_tokens: 1024, output_tokens: 128, arrival: {process: gamma, rate: 2, burstiness: 0.5}}
  EOF`

// keyAPI is the key of an API key in its Secret, and its variable in the pod.
const keyAPI = "OPENAI_API_KEY"

// lagMargin is the time from a scrape to its samples being readable.
const lagMargin = 2 * time.Second

type options struct {
	factory *kube.Factory
	streams *term.Streams
	version string
	job     jobrun.Flags
	out     output.Flags

	target      []string
	name        string
	url         string
	api         string
	model       string
	http        string
	headers     []string
	caFile      string
	caFrom      string
	file        string
	preset      string
	engine      []string
	prompts     []string
	outputs     []string
	concurrency []string
	requests    int
	rates       []string
	process     string
	burstiness  float64
	stages      string
	trace       string
	traceSpeed  float64
	maxInFlight int
	shared      sharedPrefix
	turns       int
	newTokens   int
	think       time.Duration
	warmup      time.Duration
	duration    time.Duration
	requestTime time.Duration
	idleTime    time.Duration
	eachUsage   bool
	temperature float64
	slos        []string
	seed        uint64
	stream      bool
	errorRate   float64
	prometheus  string
	scrapeLag   time.Duration
	scrapes     time.Duration
	apiSecret   string
	insecure    bool

	holdScaling  string
	allowScaling bool
	local        bool
	records      string
	dryRun       bool

	ending
	warmupGiven bool

	// loads are the groups of cases, from the flags or the file.
	loads       []load
	fileHeaders map[string]string
	profile     *profile
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams, version string) *cobra.Command {
	o := &options{factory: factory, streams: streams, version: version, out: output.Flags{Rows: true}}
	cmd := &cobra.Command{
		Use:   "bench TYPE/NAME",
		Short: "Measure what a target carries, from inside the cluster",
		Long: `Measure what a target carries, from inside the cluster.

Every combination of prompt length, output length and load is one case:
warm-up, then a steady window, then a drain that is not counted. The report is
saved in the ConfigMap inference-bench-RUN and is what envelope reads.

A load is a closed loop (--concurrency: so many requests are always in flight)
or an open one (--rate, --stages, --trace: requests are sent when they are due,
whatever became of those before).

A length is a number of tokens, or a distribution: uniform:MIN:MAX,
normal:MEAN:SD, lognormal:MEAN:SD (also with :MIN:MAX), list:64:128:1024,
histogram:64=3:1024=1. Prompts are exactly as long as asked, by token ids or,
for chat, by the server's /tokenize; each reply's usage is held against it.`,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.execute(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(cmd)
	cmd.AddCommand(jobrun.Commands(factory, streams, "bench", &o.out, func(ctx context.Context, event record.Event) error { return o.fetch(ctx, event) }, screen)...)
	cmd.AddCommand(o.get(), newPlan(factory, streams, version))
	return cmd
}

// newPlan is the command that prints a plan and starts nothing.
func newPlan(factory *kube.Factory, streams *term.Streams, version string) *cobra.Command {
	o := &options{factory: factory, streams: streams, version: version, dryRun: true}
	cmd := &cobra.Command{
		Use:     "plan TYPE/NAME",
		Short:   "Show what bench would do, and for how long; start nothing",
		Example: "  kubectl inference bench plan isvc/NAME --preset concurrency-saturation\n  kubectl inference bench plan isvc/NAME -f bench.yaml\n  kubectl inference bench plan --url http://gateway.example:8000 --rate 1,2,4 -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !o.dryRun {
				return failure.New(failure.Usage, "leave it out, or use `kubectl inference bench`", "read --dry-run: plan never starts anything")
			}
			return o.execute(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(cmd)
	o.dryRun = true
	return cmd
}

func (o *options) execute(cmd *cobra.Command, args []string) error {
	o.target = args
	o.warmupGiven = cmd.Flags().Changed("warmup")
	if err := o.ending.validate(cmd.Flags()); err != nil {
		return err
	}
	if o.preset != "" {
		if err := o.readPreset(cmd.Flags()); err != nil {
			return err
		}
	} else if o.file != "" {
		if err := o.readFile(cmd.Flags()); err != nil {
			return err
		}
	} else if err := o.flagLoad(cmd.Flags()); err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	return o.run(cmd.Context())
}

// addFlags adds what a run is made of.
func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "bench.yaml with the cases and everything else that the flags say; - reads standard input")
	flags.StringVar(&o.preset, "preset", "", "a set of cases that ships with the plugin: "+strings.Join(presetNames(), ", ")+"; -o yaml with plan shows it whole")
	flags.StringArrayVar(&o.engine, "engine-setting", nil, "how the engine was started, such as max_num_seqs=40 (repeatable); it changes nothing, reports and CSV carry it")
	flags.StringVar(&o.name, "name", "", "name of the run (default the target's name and the time)")
	flags.StringVar(&o.url, "url", "", "base URL of the API, instead of the target's Service")
	flags.StringVar(&o.api, "api", record.APICompletions, "protocol: completions (prompts of token ids) or chat (text, counted by the server's /tokenize)")
	flags.StringVar(&o.model, "model", "", "model id (default what the server names)")
	flags.StringVar(&o.http, "http", record.HTTP1, "version of HTTP: 1.1, 2 (over TLS) or h2c (2 without TLS)")
	flags.StringArrayVar(&o.headers, "header", nil, "header of every request, such as 'x-tenant: research' (repeatable); never a credential")
	flags.StringVar(&o.caFile, "ca-file", "", "file here with the certificates (PEM) of the target's authority; they become part of the plan")
	flags.StringVar(&o.caFrom, "ca-from", "", "the same from the cluster: configmap/NAME[/KEY] or secret/NAME[/KEY] (default key "+keyCA+")")
	flags.StringArrayVar(&o.concurrency, "concurrency", []string{"1,5,10,20,40"}, "closed loop: requests in flight, one case for each")
	flags.StringArrayVar(&o.prompts, "prompt-tokens", []string{"1024"}, "prompt lengths in tokens: numbers or distributions, one case for each")
	flags.StringArrayVar(&o.outputs, "output-tokens", []string{"128"}, "output lengths in tokens, in the same way")
	flags.IntVar(&o.requests, "requests", 0, "closed loop: end a case after so many measured requests (or sessions), or at --duration")
	flags.StringArrayVar(&o.rates, "rate", nil, "open loop: requests due each second, one case for each")
	flags.StringVar(&o.process, "arrival", workload.Poisson, "open loop: constant, poisson or gamma gaps")
	flags.Float64Var(&o.burstiness, "burstiness", 1, "with --arrival gamma: its shape; 1 is poisson, below 1 comes in bursts, above 1 is more even")
	flags.StringVar(&o.stages, "stages", "", "open loop of changing rate, RATE:TIME or FROM-TO:TIME: 1:60s,1-8:2m,8:60s")
	flags.StringVar(&o.trace, "trace", "", "open loop from a file: Mooncake's JSON lines or Azure's CSV; what comes within --warmup is sent and not measured")
	flags.Float64Var(&o.traceSpeed, "trace-speed", 1, "with --trace: play it so many times as fast")
	flags.IntVar(&o.maxInFlight, "max-in-flight", 0, fmt.Sprintf("open loop: requests (or sessions) in flight at most (default %d); reaching it is reported", workload.DefaultMaxInFlight))
	flags.IntVar(&o.shared.Tokens, "shared-prefix-tokens", 0, "let every prompt begin with so many tokens that others have too (default none are shared)")
	flags.IntVar(&o.shared.Groups, "shared-prefix-groups", 1, "with --shared-prefix-tokens: number of different prefixes")
	flags.IntVar(&o.turns, "turns", 1, "sessions of so many turns: each prompt holds the ones before it and answers of the asked length")
	flags.IntVar(&o.newTokens, "new-tokens", 64, "with --turns: tokens that the user adds in each later turn")
	flags.DurationVar(&o.think, "think", 0, "with --turns: mean time between an answer and the next turn (exponential)")
	flags.DurationVar(&o.warmup, "warmup", 30*time.Second, "time under load before a case is measured")
	flags.DurationVar(&o.duration, "duration", 2*time.Minute, "measured time of a case")
	flags.DurationVar(&o.requestTime, "request-limit", 6*time.Minute, "when a request has failed")
	flags.DurationVar(&o.idleTime, "idle-limit", 0, "when a request without a response header, or a stream that stands still, has failed (default --request-limit)")
	flags.BoolVar(&o.eachUsage, "continuous-usage", false, "ask for the token count on every chunk (vLLM), which makes ITL known")
	flags.Float64Var(&o.temperature, "temperature", 0, "sampling temperature")
	flags.StringArrayVar(&o.slos, "slo", nil, "objective, such as p99_e2e=30s or p95_ttft=2s (repeatable)")
	flags.Uint64Var(&o.seed, "seed", 1, "decides every prompt: the same seed and name send the same load")
	flags.BoolVar(&o.stream, "stream", true, "stream the answers: TTFT and token times are measured")
	flags.Float64Var(&o.errorRate, "max-error-rate", 0.01, "share of failed requests above which a case does not count (exit code 3)")
	flags.StringVar(&o.prometheus, "prometheus", "", "URL of Prometheus, as the Job reaches it (default that of the target's own trigger, with what its TriggerAuthentication names); none measures without it")
	flags.DurationVar(&o.scrapes, "scrape-interval", 15*time.Second, "how often Prometheus scrapes the engine; a window needs five scrapes before a threshold rests on it")
	flags.DurationVar(&o.scrapeLag, "scrape-lag", 0, "wait for the last scrape of a window (default the scrape interval and 2s)")
	flags.StringVar(&o.apiSecret, "api-key-secret", "", "Secret with the API key: NAME, or NAME/KEY (default key "+keyAPI+"); with --local, the environment variable of that name is used")
	flags.BoolVar(&o.insecure, "insecure-skip-target-tls-verify", false, "accept any certificate of the target: anybody on the way can read the API key")
	flags.StringVar(&o.holdScaling, "hold-scaling", "", "keep the number of replicas while the run lasts: what there is now, or =N; a Job of its own gives scaling back when the run has ended, is gone or takes too long (needs `kubectl inference manifests hold/rbac`)")
	flags.Lookup("hold-scaling").NoOptDefVal = holdCurrent
	flags.BoolVar(&o.allowScaling, "allow-scaling", false, "measure although an autoscaler is live; a case in which the number of replicas changes is not valid")
	flags.BoolVar(&o.local, "local", false, "send the load from here; needs --url")
	flags.StringVar(&o.records, "records", "", "with --local: file for one JSON line a request")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and start nothing")
	o.ending.addFlags(flags)
	o.job.Screen = screen
	o.job.AddFlags(cmd, o.streams)
	o.out.AddFlags(cmd)
	complete := func(flag string, values ...string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("preset", presetNames()...)
	complete("api", record.APICompletions, record.APIChat)
	complete("http", record.HTTP1, record.HTTP2, record.HTTP2Clear)
	complete("arrival", workload.Constant, workload.Poisson, workload.Gamma)
}

func (o *options) validate() error {
	switch {
	case len(o.target) > 2:
		return failure.New(failure.Usage, "", "bench: one target is measured at a time, got %d words", len(o.target))
	case len(o.target) == 0 && o.url == "":
		return failure.New(failure.Usage, "give a target such as isvc/NAME, or --url", "bench: there is nothing to measure")
	case o.local && o.url == "":
		return failure.New(failure.Usage, "give --url, such as http://localhost:8000 with a port-forward", "bench: --local cannot reach a Service of the cluster")
	case o.records != "" && !o.local:
		return failure.New(failure.Usage, "the records of a Job are not kept yet; add --local", "read --records: it works with --local only")
	}
	if err := o.validateTarget(); err != nil {
		return err
	}
	if err := o.validateScaling(); err != nil {
		return err
	}
	if o.job.Timeout < 0 {
		return failure.New(failure.Usage, "", "read --timeout: %v is negative", o.job.Timeout)
	}
	if o.scrapes <= 0 || o.scrapeLag < 0 {
		return failure.New(failure.Usage, "", "read --scrape-interval and --scrape-lag: a time is not above 0")
	}
	if o.scrapeLag == 0 {
		o.scrapeLag = o.scrapes + lagMargin
	}
	if err := o.out.Validate(); err != nil {
		return err
	}
	if o.name != "" {
		if err := jobrun.ValidateRun(o.name); err != nil {
			return err
		}
	}
	if o.local || o.dryRun {
		return nil
	}
	return o.job.Validate()
}

// get prints the report of a run that has ended.
func (o *options) get() *cobra.Command {
	out := output.Flags{Rows: true}
	cmd := &cobra.Command{
		Use:     "get RUN",
		Short:   "Print the report of a run",
		Example: "  kubectl inference bench get RUN -o json\n  kubectl inference bench get RUN -o csv > results.csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.New(failure.Usage, "`kubectl inference bench list` lists the runs", "bench get: give the name of one run")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			report, err := o.report(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return out.Print(o.streams.Out, report, o.writer(report, nextSaved+report.Run))
		},
	}
	out.AddFlags(cmd)
	return cmd
}
