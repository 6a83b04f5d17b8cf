// Package envelope is `kubectl inference envelope`: it reads the reports of
// measuring runs and shows what one replica carries, where the knee is by each
// rule, and which trigger thresholds follow.
package envelope

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/capacity"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const example = `  # What did run nightly-7 find, and which thresholds follow?
  kubectl inference envelope nightly-7 -n llm-serving

  # From a saved report, without a cluster, for an objective
  kubectl inference envelope report.json --slo p99_e2e=30s

  # The table that the seed platform published, as an example
  kubectl inference envelope manifests/examples/seed-benchreport.json --check waiting=2

  # A table in the columns of bench get -o csv, also that of another tool
  kubectl inference envelope results.csv

  # Two runs as one curve, as data
  kubectl inference envelope nightly-7 nightly-8 -o json > envelope.json

  # Would the thresholds that are there now ever act?
  kubectl inference envelope nightly-7 --check waiting=2 --check kv=0.75`

const long = `Show the capacity envelope of measuring runs: for each token shape the curve of
throughput and latency of one replica, the knee by every rule, the rate to plan
with, and the threshold of each scaling trigger with the cases it rests on.

RUN is the name of a run of bench, whose report is in the namespace; FILE is a
saved report or a CSV of bench's columns, - standard input. Several are joined
into one curve.

Nothing is measured. Where the evidence does not suffice, a number is withheld
and the reason takes its place.`

type options struct {
	factory *kube.Factory
	streams *term.Streams
	output  output.Flags

	sources   []string
	slos      []string
	checks    []string
	headroom  float64
	tolerance float64
	seed      uint64

	capacity capacity.Options
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams) *cobra.Command {
	defaults := capacity.DefaultOptions()
	o := &options{factory: factory, streams: streams, capacity: defaults}
	cmd := &cobra.Command{
		Use:     "envelope RUN|FILE...",
		Short:   "Show what one replica carries, and the thresholds that follow",
		Long:    long,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.slos, "slo", nil, "an objective, such as p99_e2e=30s or p95_ttft=2s; can be given more than once (default those of the run)")
	flags.Float64Var(&o.headroom, "headroom", defaults.Headroom, "the share of a replica's capacity to keep free, 0 to below 1")
	flags.StringArrayVar(&o.checks, "check", nil, "a threshold that you have, such as waiting=2 or p99_e2e=30: say at which loads it acts; can be given more than once")
	flags.Float64Var(&o.tolerance, "hpa-tolerance", defaults.Tolerance, "the tolerance of the cluster's HPA controller")
	flags.Uint64Var(&o.seed, "seed", defaults.Seed, "the seed of the resampled intervals")
	o.output.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("slo", cobra.FixedCompletions([]string{"p99_e2e=", "p99_ttft=", "p99_tpot=", "p99_max_stall="},
		cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("check", cobra.FixedCompletions(checkCompletions(),
		cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *options) complete(args []string) error {
	o.sources = args
	o.capacity.Headroom, o.capacity.Tolerance, o.capacity.Seed = o.headroom, o.tolerance, o.seed
	slos, err := record.ParseSLOs(o.slos)
	if err != nil {
		return err
	}
	o.capacity.SLOs = append(o.capacity.SLOs, slos...)
	for _, text := range o.checks {
		check, err := parseCheck(text)
		if err != nil {
			return err
		}
		o.capacity.Checks = append(o.capacity.Checks, check)
	}
	return nil
}

func (o *options) validate() error {
	if len(o.sources) == 0 {
		return failure.New(failure.Usage, "give the name of a run or a saved report: kubectl inference envelope report.json",
			"read arguments: no report")
	}
	if count(o.sources, stdin) > 1 {
		return failure.New(failure.Usage, "", "read arguments: standard input can be read once")
	}
	if !(o.headroom >= 0 && o.headroom < 1) {
		return failure.New(failure.Usage, "10 % is --headroom 0.1", "read --headroom: %v is not between 0 and 1", o.headroom)
	}
	if !(o.tolerance >= 0 && o.tolerance < 1) {
		return failure.New(failure.Usage, "Kubernetes' default is 0.1", "read --hpa-tolerance: %v is not between 0 and 1", o.tolerance)
	}
	return o.output.Validate()
}

func count(words []string, word string) (n int) {
	for _, one := range words {
		if one == word {
			n++
		}
	}
	return n
}

// triggerAlias are the short names of triggers.
func triggerAlias(name string) string {
	switch name {
	case "queue":
		return record.TriggerWaiting
	case "kv":
		return record.TriggerKV
	case "p99":
		return record.TriggerP99E2E
	}
	return name
}

func parseCheck(text string) (capacity.Check, error) {
	name, value, found := strings.Cut(text, "=")
	check := capacity.Check{Trigger: triggerAlias(name)}
	hint := "write TRIGGER=THRESHOLD, such as waiting=2 or p99_e2e=30; the triggers are " + strings.Join(capacity.TriggerNames(), ", ")
	if !found || !slices.Contains(capacity.TriggerNames(), check.Trigger) {
		return check, failure.New(failure.Usage, hint, "read --check %q: there is no trigger %q", text, name)
	}
	threshold, err := strconv.ParseFloat(value, 64)
	if err != nil || !(threshold > 0) || math.IsInf(threshold, 0) {
		return check, failure.New(failure.Usage, hint, "read --check %q: the threshold is not a number above 0", text)
	}
	check.Threshold = threshold
	return check, nil
}

func checkCompletions() []string {
	var all []string
	for _, name := range capacity.TriggerNames() {
		all = append(all, name+"=")
	}
	return all
}
