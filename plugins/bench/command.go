// Package bench is the command that measures a target: a Job in the cluster
// sends the load, so that neither a laptop nor a port-forward is part of what
// is measured. --local runs the same load from here.
package bench

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const example = `  # The seed's concurrency profile against an InferenceService
  kubectl inference bench isvc/deepseek-r1-14b --concurrency 1,5,10,20,40 --prompt-tokens 1024 --output-tokens 128

  # Show what would run, and for how long
  kubectl inference bench isvc/deepseek-r1-14b --dry-run

  # Any OpenAI-compatible server, from here
  kubectl inference bench --local --url http://localhost:8000 --duration 30s`

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
	prompts     []int
	outputs     []int
	concurrency []int
	warmup      time.Duration
	duration    time.Duration
	requestTime time.Duration
	slos        []string
	seed        uint64
	stream      bool
	errorRate   float64
	prometheus  string
	scrapeLag   time.Duration
	scrapes     time.Duration
	apiSecret   string
	insecure    bool
	local       bool
	records     string
	dryRun      bool
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams, version string) *cobra.Command {
	o := &options{factory: factory, streams: streams, version: version}
	cmd := &cobra.Command{
		Use:   "bench TYPE/NAME",
		Short: "Measure what a target carries, from inside the cluster",
		Long: `Measure what a target carries, from inside the cluster.

Every combination of prompt length, output length and concurrency is one case:
warm-up, then a steady window, then a drain that is not counted. The report is
saved in the ConfigMap inference-bench-RUN and is what envelope reads.`,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.target = args
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the run (default the target's name and the time)")
	flags.StringVar(&o.url, "url", "", "base URL of the API, instead of the target's Service")
	flags.StringVar(&o.api, "api", record.APICompletions, "protocol: completions (exact prompt lengths) or chat")
	flags.StringVar(&o.model, "model", "", "model id (default what the server names)")
	flags.IntSliceVar(&o.concurrency, "concurrency", []int{1, 5, 10, 20, 40}, "requests in flight, one case for each")
	flags.IntSliceVar(&o.prompts, "prompt-tokens", []int{1024}, "prompt lengths in tokens")
	flags.IntSliceVar(&o.outputs, "output-tokens", []int{128}, "output lengths in tokens")
	flags.DurationVar(&o.warmup, "warmup", 30*time.Second, "time under load before a case is measured")
	flags.DurationVar(&o.duration, "duration", 2*time.Minute, "measured time of a case")
	flags.DurationVar(&o.requestTime, "request-limit", 6*time.Minute, "when a request has failed")
	flags.StringArrayVar(&o.slos, "slo", nil, "objective, such as p99_e2e=30s or p95_ttft=2s (repeatable)")
	flags.Uint64Var(&o.seed, "seed", 1, "decides every prompt: the same seed and name send the same load")
	flags.BoolVar(&o.stream, "stream", true, "stream the answers: TTFT and token times are measured")
	flags.Float64Var(&o.errorRate, "max-error-rate", 0.01, "share of failed requests above which a case does not count (exit code 3)")
	flags.StringVar(&o.prometheus, "prometheus", "", "URL of Prometheus, as the Job reaches it (default that of the target's own triggers)")
	flags.DurationVar(&o.scrapes, "scrape-interval", 15*time.Second, "how often Prometheus scrapes the engine; a window needs five scrapes before a threshold rests on it")
	flags.DurationVar(&o.scrapeLag, "scrape-lag", 0, "wait for the last scrape of a window (default the scrape interval and 2s)")
	flags.StringVar(&o.apiSecret, "api-key-secret", "", "Secret with the API key under the key "+keyAPI)
	flags.BoolVar(&o.insecure, "insecure-skip-target-tls-verify", false, "accept any certificate of the target")
	flags.BoolVar(&o.local, "local", false, "send the load from here; needs --url")
	flags.StringVar(&o.records, "records", "", "with --local: file for one JSON line a request")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and start nothing")
	o.job.AddFlags(cmd, streams)
	o.out.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("api", cobra.FixedCompletions([]string{record.APICompletions, record.APIChat}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(jobrun.Commands(factory, streams, "bench", &o.out, func(ctx context.Context, event record.Event) error { return o.fetch(ctx, event) })...)
	cmd.AddCommand(o.get())
	return cmd
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
	var out output.Flags
	cmd := &cobra.Command{
		Use:     "get RUN",
		Short:   "Print the report of a run",
		Example: "  kubectl inference bench get RUN -o json",
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
			return out.Print(o.streams.Out, report, writer(report, nextSaved+report.Run))
		},
	}
	out.AddFlags(cmd)
	return cmd
}
