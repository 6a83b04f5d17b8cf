// Package explain is the command that says why a workload has the size that it
// has: it reads the chain of objects, models the HPA controller's last sync,
// and checks the model against what the controller wrote.
package explain

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const long = `Explain why a workload has the number of replicas that it has, and what would
change that: per trigger its value, its target, the size that it asks for and
why; then stabilization, rate limits and the result, checked against what the
HPA controller wrote.

TARGET is any link of the chain: isvc/NAME (InferenceService), llmisvc/NAME
(LLMInferenceService), so/NAME (ScaledObject), hpa/NAME, deploy/NAME or another
scale target. A bare NAME is looked for in that order. Without a TARGET every
workload of the namespace (-A: of all namespaces) gets one line, worst first.

Reading is passive: values are those of the HPA's status, as of its last sync;
--fresh puts those that the triggers' Prometheus and the metrics server have now
beside them, read with the trigger's own credentials: from outside the cluster
through the API server, or by a port-forward where that would lose them.
--external-metrics asks KEDA's own metrics API instead, for triggers of any type.
That is not passive: KEDA asks its sources as it does for the HPA, counts their
failures, and may so begin or end a fallback.
What the controller keeps in its memory is given as bounds, and named; with --fresh
those are narrowed by the statuses that Prometheus scraped of kube-state-metrics.

--at explains a past moment from the same history: sizes, values and what was
written then, with the spec of today unless it was edited since, which is said.`

const example = `  # Why are there N replicas right now?
  kubectl inference explain-scaling isvc/deepseek-r1-14b -n llm-serving

  # As data: the size that each trigger asks for
  kubectl inference explain-scaling so/deepseek-r1-14b -o jsonpath='{.chains[0].triggers[*].proposes}'

  # What scales in the whole cluster, the worst first
  kubectl inference explain-scaling -A

  # What if the queue grew to 9, and what if its threshold were 1.5?
  kubectl inference explain-scaling isvc/deepseek-r1-14b --set s0.value=9
  kubectl inference explain-scaling isvc/deepseek-r1-14b --set 'queue depth.threshold=1.5' --set max=8

  # Follow it; what the triggers read right now; who changed the size
  kubectl inference explain-scaling isvc/deepseek-r1-14b --watch
  kubectl inference explain-scaling isvc/deepseek-r1-14b --fresh --history

  # Why did it add a replica at 12:03? From Prometheus, or from recordings
  kubectl inference explain-scaling isvc/deepseek-r1-14b --at 12:03
  kubectl inference explain-scaling -f recordings/ --at 2026-11-30T12:03:00Z

  # Lint a ScaledObject in CI
  kubectl inference explain-scaling -f scaledobject.yaml --fail-on=warning
  kubectl inference explain-scaling --list-rules

  # What would a ScaledObject do that is not applied yet?
  kubectl inference explain-scaling -f scaledobject.yaml --set replicas=2 --set s0.value=9

  # Saved objects, without a cluster
  kubectl get hpa,scaledobject,deployment,pods,events -n llm-serving -o yaml --show-managed-fields > saved.yaml
  kubectl inference explain-scaling -f saved.yaml`

type options struct {
	factory *kube.Factory
	streams *term.Streams
	out     output.Flags
	now     func() time.Time

	files      []string
	kubernetes string
	keda       string
	target     kube.Target
	namespace  string
	all, watch bool
	failOn     string
	fresh      bool
	external   bool
	history    bool
	record     string
	leadTime   time.Duration
	syncPeriod time.Duration
	sets       []string
	settings   []setting
	rules      bool
	// atText is --at as given, at what it means; nil for now.
	atText     string
	at         *time.Time
	prometheus string
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams) *cobra.Command {
	return command(&options{factory: factory, streams: streams, now: time.Now})
}

func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "explain-scaling [TARGET] [-A | -f FILE]",
		Short:             "Say why a workload has N replicas, and what would change that",
		Long:              long,
		Example:           example,
		ValidArgsFunction: o.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.out.AddFlags(cmd)
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "explain saved objects of these files or directories instead of a cluster's; - is standard input")
	cmd.Flags().StringVar(&o.kubernetes, "kubernetes-version", "", "version of the controller that wrote saved objects, such as 1.35 (default: the newest known)")
	cmd.Flags().StringVar(&o.keda, "keda-version", "", "version of the KEDA of saved objects that do not tell it, such as 2.17 (default: the newest known)")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "scan all namespaces: a line for each workload, the worst first")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "explain again on every change, until Ctrl-C, which is no failure (exit code 0); where the output is no terminal, a line for each new decision")
	cmd.Flags().BoolVar(&o.fresh, "fresh", false, "read the values of now too: of the triggers' own Prometheus, with the credentials of their TriggerAuthentication, and of the metrics server")
	cmd.Flags().BoolVar(&o.external, "external-metrics", false, "ask the external metrics API (KEDA) for the values of now; not passive: KEDA queries its sources and counts failures")
	cmd.Flags().BoolVar(&o.history, "history", false, "tell what changed the size within the last hour, and who; with --fresh also the sizes that the triggers' Prometheus has of kube-state-metrics")
	cmd.Flags().StringVar(&o.atText, "at", "", "explain a past moment: 12:03 (today's, or else yesterday's), 2026-11-30T12:03:00Z, or -10m; from what the triggers' Prometheus scraped of kube-state-metrics, or with -f from the last recording before it")
	cmd.Flags().StringVar(&o.prometheus, "prometheus", "", "where the history for --at and --fresh is, such as http://prometheus.monitoring:9090 (default: the server of the first trigger that has one)")
	cmd.Flags().StringVar(&o.record, "record", "", "save what is read, without secrets, into this directory: -f explains it elsewhere")
	cmd.Flags().StringVar(&o.failOn, "fail-on", "", "exit with 3 where there is a finding of this severity or a worse one: warning or error")
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{record.SeverityWarning, record.SeverityError}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().DurationVar(&o.syncPeriod, "hpa-sync-period", hpa.DefaultSyncPeriod, "how often the HPA controller looks: its flag --horizontal-pod-autoscaler-sync-period. A longer one than its own is safe: less is called exact")
	cmd.Flags().DurationVar(&o.leadTime, "lead-time", 0, "warn where a trigger takes longer than this to ask for a replica, such as 90s")
	cmd.Flags().StringArrayVar(&o.sets, "set", nil, "ask what if: TRIGGER.value=, .threshold=, .metricType=, .activationThreshold=, replicas=, min=, max=, idle=, cooldown=, pollingInterval=, behavior.scaleUp.stabilizationWindowSeconds= ...")
	cmd.Flags().BoolVar(&o.rules, "list-rules", false, "list the rules of WARNINGS with their ids and severities, and do nothing else")
	return cmd
}

// completeTarget completes TYPE/NAME.
func (o *options) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if !strings.Contains(typed, "/") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return o.factory.CompleteTargets(cmd.Context(), typed), directive
}

func (o *options) complete(args []string) (err error) {
	if err := o.out.Validate(); err != nil {
		return err
	}
	switch {
	case o.rules && (len(args) > 0 || len(o.files) > 0 || o.all || o.watch):
		return failure.New(failure.Usage, "leave the rest away", "explain scaling: --list-rules explains nothing")
	case o.rules:
		return nil
	case o.all && len(o.files) > 0:
		return failure.New(failure.Usage, "leave -A away: a file's objects are all explained", "explain scaling: -A is for a cluster, -f for saved objects")
	case o.all && len(args) > 0:
		return failure.New(failure.Usage, "-n chooses the namespace of a TARGET", "explain scaling: give a TARGET or -A, not both")
	case o.watch && (len(args) == 0 || len(o.files) > 0):
		return failure.New(failure.Usage, o.targetHint(), "explain scaling: --watch is for one TARGET of a cluster")
	case o.fresh && (len(args) == 0 || len(o.files) > 0):
		return failure.New(failure.Usage, o.targetHint(), "explain scaling: --fresh is for one TARGET of a cluster")
	case o.external && (len(args) == 0 || len(o.files) > 0):
		return failure.New(failure.Usage, o.targetHint(), "explain scaling: --external-metrics is for one TARGET of a cluster")
	case o.external && o.watch:
		return failure.New(failure.Usage, "use --fresh, which is passive", "explain scaling: --external-metrics is not for --watch: each question makes KEDA query its sources")
	case o.record != "" && (len(args) == 0 || len(o.files) > 0 || o.watch):
		return failure.New(failure.Usage, o.targetHint(), "explain scaling: --record is for one look at one TARGET of a cluster")
	case o.scans(args) && o.history:
		return failure.New(failure.Usage, o.targetHint(), "explain scaling: --history is for one TARGET")
	case o.syncPeriod < time.Second || o.syncPeriod > time.Hour:
		return failure.New(failure.Usage, "it is 15s unless the controller's flag --horizontal-pod-autoscaler-sync-period says otherwise", "read --hpa-sync-period: %v is not between 1s and 1h", o.syncPeriod)
	case o.failOn != "" && o.failOn != record.SeverityWarning && o.failOn != record.SeverityError:
		return failure.New(failure.Usage, "use --fail-on=warning or --fail-on=error", "read --fail-on: %q is no severity", o.failOn)
	case o.failOn != "" && o.watch:
		return failure.New(failure.Usage, "leave one away", "explain scaling: --watch does not end, --fail-on is about the end")
	case o.scans(args) && len(o.sets) > 0:
		return failure.New(failure.Usage, o.targetHint(), "explain scaling: --set is for one TARGET")
	}
	if err := o.completeAt(args); err != nil {
		return err
	}
	if o.kubernetes != "" && len(o.files) == 0 {
		return failure.New(failure.Usage, "", "read --kubernetes-version: it is for saved objects (-f); a cluster says its own")
	}
	if _, ok := hpa.ParseVersion(o.kubernetes); o.kubernetes != "" && !ok {
		return failure.New(failure.Usage, "write it as MAJOR.MINOR, such as 1.35", "read --kubernetes-version: %q is no version", o.kubernetes)
	}
	if o.keda != "" && len(o.files) == 0 {
		return failure.New(failure.Usage, "", "read --keda-version: it is for saved objects (-f); a cluster says its own")
	}
	if _, ok := keda.ParseVersion(o.keda); o.keda != "" && !ok {
		return failure.New(failure.Usage, "write it as MAJOR.MINOR, such as 2.17", "read --keda-version: %q is no version", o.keda)
	}
	if o.settings, err = parseSettings(o.sets); err != nil {
		return err
	}
	if len(args) > 0 {
		if o.target, err = kube.ParseTarget(args); err != nil {
			return err
		}
	}
	if len(o.files) > 0 {
		return nil
	}
	o.namespace, err = o.factory.Namespace()
	return err
}

// targetHint says how to come to one TARGET of a cluster.
func (o *options) targetHint() string {
	switch {
	case len(o.files) > 0:
		return "leave the flag away, or -f: saved objects do not change"
	case o.all:
		return "leave -A away and give a TARGET, such as isvc/NAME"
	}
	return "give a TARGET, such as isvc/NAME"
}

// scans says whether there is no target: then everything is looked at.
func (o *options) scans(args []string) bool { return len(args) == 0 && len(o.files) == 0 }

func (o *options) run(ctx context.Context) error {
	if o.rules {
		return o.listRules()
	}
	if o.target.Name == "" && len(o.files) == 0 {
		return o.runScan(ctx)
	}
	if o.watch {
		return o.runWatch(ctx)
	}
	in, err := o.fetch(ctx)
	if err != nil {
		return err
	}
	document, err := o.explained(ctx, in)
	if err != nil {
		return err
	}
	if !o.out.Human() {
		// The table tells of them itself.
		for _, unread := range document.Unread {
			o.streams.Warn("%s", unread.Message)
		}
	}
	if err := o.out.Print(o.streams.Out, document, func(w io.Writer) error { return render(w, document, o.streams.Width()) }); err != nil {
		return err
	}
	return o.verdict(document.Chains)
}

// explained is the document of what was read, with what the flags add to it.
func (o *options) explained(ctx context.Context, in inputs) (record.ScalingExplanation, error) {
	in.settings = o.settings
	if o.fresh || o.external {
		servers, end, err := o.servers(in.raw)
		if err != nil {
			return record.ScalingExplanation{}, err
		}
		defer end()
		in.servers = servers
	}
	if o.fresh {
		if err := o.addStatuses(ctx, &in); err != nil {
			return record.ScalingExplanation{}, err
		}
	}
	document := explain(in)
	addPast(&document, in)
	for i, link := range in.chains {
		if in.then != nil {
			// Warnings are about today's objects.
			break
		}
		lintLead(link, &document.Chains[i], o.leadTime, in.at.sync())
	}
	if o.history {
		for i, link := range in.chains {
			history := historyOf(link, in.at.time)
			document.Chains[i].History = &history
		}
		if o.fresh || in.then != nil {
			o.addSampledSizes(ctx, in, &document)
		}
	}
	if o.fresh || o.external {
		if err := o.addFresh(ctx, in, &document); err != nil {
			return document, err
		}
	}
	return document, addWhatIf(&document, in)
}

func (o *options) runScan(ctx context.Context) error {
	namespace := o.namespace
	if o.all {
		namespace = ""
	}
	began := o.now()
	fetched, err := o.factory.FetchAllChains(ctx, namespace)
	if err != nil {
		return err
	}
	at := o.readSince(began)
	o.warnOfClock(at)
	document := scan(inputs{
		namespace:  namespace,
		chains:     fetched.Chains,
		kubernetes: fetched.KubernetesVersion,
		unread:     fetched.Unread,
		at:         at,
	})
	if err := o.out.Print(o.streams.Out, document, func(w io.Writer) error { return renderScan(w, document, o.streams.Width()) }); err != nil {
		return err
	}
	var chains []record.ScalingChain
	for _, item := range document.Items {
		chains = append(chains, item.Chain)
	}
	return o.verdict(chains)
}
