// Package syncmodel is the command that delivers a pinned model revision from
// the Hub to a bucket. The work runs in a Job; --local runs it here.
package syncmodel

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/sync"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const example = `  # Deliver a pinned revision; the manifest is written last
  kubectl inference sync-model Qwen/Qwen2.5-0.5B-Instruct --revision 7ae557604adf67be50417f59c2c2f167def9a775 --to s3://models/base

  # Only what vLLM reads, from a private repository, into an S3 server of your own
  kubectl inference sync-model OWNER/NAME --revision SHA --to s3://models/base --preset vllm \
    --hub-secret hub-token --s3-endpoint https://s3.example.com --s3-secret s3-keys

  # A model of hundreds of gigabytes: the files are shared by four pods
  kubectl inference sync-model OWNER/NAME --revision SHA --to s3://models/base --workers 4 --metrics-port 9090

  # Through a proxy that has a certificate authority of its own
  kubectl inference sync-model OWNER/NAME --revision SHA --to s3://models/base --proxy http://proxy:3128 --ca-configmap trust

  # What would be done, without a cluster
  kubectl inference sync-model OWNER/NAME --revision SHA --to s3://models/base --local --dry-run`

// keyToken is the key of the Hub's token in its Secret, and the environment
// variable that the Hub's own tools read.
const keyToken = "HF_TOKEN"

type options struct {
	factory *kube.Factory
	streams *term.Streams
	version string
	job     jobrun.Flags
	store   jobrun.StoreFlags
	network jobrun.NetworkFlags
	place   jobrun.PlacementFlags
	out     output.Flags

	plan      record.SyncPlan
	hubSecret string
	local     bool
	retries   int32
	memory    string
	deadline  time.Duration
	metrics   int32
	push      string

	signSecret, signFile string
	signKey              string
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams, version string) *cobra.Command {
	o := &options{factory: factory, streams: streams, version: version}
	cmd := &cobra.Command{
		Use:   "sync-model OWNER/NAME --revision SHA --to s3://BUCKET/PREFIX",
		Short: "Deliver a pinned Hub revision to a bucket, verified, manifest last",
		Long: `Deliver a pinned Hub revision to a bucket, verified, manifest last.

Every file is streamed from the Hub to the bucket without touching a disk, and
is complete only when its size and digest equal the Hub's own. _MANIFEST.json is
written when everything is there: a prefix without it is not a delivery.`,
		Example:           example,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.New(failure.Usage, "name the model as on the Hub: `kubectl inference sync-model OWNER/NAME ...`", "sync-model: give one model as OWNER/NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.complete(args)
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.plan.Revision, "revision", "", "commit (40 hex digits), branch or tag; what it resolves to is pinned")
	flags.StringVar(&o.plan.Destination, "to", "", "bucket and prefix, as s3://BUCKET/PREFIX")
	flags.BoolVar(&o.plan.Flat, "flat", false, "write to the prefix itself, not to PREFIX/OWNER/NAME/SHA")
	flags.BoolVar(&o.plan.Replace, "replace", false, "with --flat: replace the delivery of another model in that prefix")
	flags.BoolVar(&o.plan.Recheck, "recheck", false, "read every object that is there again and heal what changed on the store's disks; with one worker")
	flags.StringArrayVar(&o.plan.Include, "include", nil, "only files that match, as in hf download (repeatable)")
	flags.StringArrayVar(&o.plan.Exclude, "exclude", nil, "no files that match (repeatable)")
	flags.StringVar(&o.plan.Preset, "preset", record.PresetAll, "which files: all, or vllm for what vLLM reads")
	flags.StringVar(&o.plan.HubEndpoint, "hub-endpoint", "", "URL of the Hub or a mirror, as the Job reaches it (default the public Hub)")
	flags.StringVar(&o.hubSecret, "hub-secret", "", "Secret with the Hub's token under the key "+keyToken)
	flags.StringVar(&o.plan.KMSKey, "kms-key", "", "KMS key that encrypts the objects")
	flags.BoolVar(&o.plan.AllowIncompleteIndex, "allow-incomplete-index", false, "accept an index that names weights which are not part of the plan")
	flags.BoolVar(&o.plan.AllowUnverified, "allow-unverified", false, "accept files for which the endpoint states no digest")
	flags.IntVar(&o.plan.Parallel, "parallel", sync.DefaultParallel, "transfers in flight in a pod")
	flags.StringVar(&o.memory, "memory", "256Mi", "memory for the transfers of a pod; its limit is a little more")
	flags.IntVar(&o.plan.Workers, "workers", 1, "pods that share the files; a single file is never divided")
	flags.Int32Var(&o.retries, "retries", 3, "how often a failed pod is replaced; errors that will come again are not retried")
	flags.DurationVar(&o.deadline, "deadline", 24*time.Hour, "when a Job that has not ended has failed")
	flags.Int32Var(&o.metrics, "metrics-port", 0, "port on which the pods serve Prometheus metrics (default none)")
	flags.StringVar(&o.push, "push-gateway", "", "URL of a Prometheus Pushgateway that gets the metrics when the Job ends")
	flags.StringVar(&o.signSecret, "sign-secret", "", "Secret with the private key (PEM) under the key "+keySigning+", with which the Job signs the files")
	flags.StringVar(&o.signFile, "sign-key", "", "file with the private key (PEM), with --local")
	flags.BoolVar(&o.plan.ReplaceSignature, "replace-signature", false, "replace a signature that was made with another key")
	flags.BoolVar(&o.plan.DryRun, "dry-run", false, "print what would be done and write nothing")
	flags.BoolVar(&o.local, "local", false, "run here instead of in a Job, with "+keyToken+" and the AWS credentials of this environment")
	o.job.AddFlags(cmd, streams)
	o.store.AddFlags(cmd)
	o.network.AddFlags(cmd)
	o.place.AddFlags(cmd)
	o.out.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions([]string{record.PresetAll, record.PresetVLLM}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newVerify(factory, streams), newPrune(factory, streams))
	cmd.AddCommand(jobrun.Commands(factory, streams, "sync", &o.out, func(_ context.Context, event record.Event) error { return o.show(event.Result) })...)
	return cmd
}

func (o *options) complete(args []string) {
	o.plan.TypeMeta = record.Meta(record.KindSyncPlan)
	o.plan.Repo = args[0]
	o.plan.S3Endpoint, o.plan.S3Region = o.store.Endpoint, o.store.Region
}

func (o *options) validate() error {
	if o.plan.Destination == "" {
		return failure.New(failure.Usage, "give --to s3://BUCKET/PREFIX", "sync-model %s: no destination given", o.plan.Repo)
	}
	if o.plan.Revision == "" {
		return failure.New(failure.Usage, "give --revision SHA; `--revision main` resolves the branch and pins what it finds", "sync-model %s: no revision given", o.plan.Repo)
	}
	for _, check := range []func() error{o.validateSigning, o.validateJob, o.plan.Validate, o.out.Validate, o.store.Validate, o.network.Validate, o.place.Validate} {
		if err := check(); err != nil {
			return err
		}
	}
	if o.local {
		return o.validateLocal()
	}
	return o.job.Validate()
}
