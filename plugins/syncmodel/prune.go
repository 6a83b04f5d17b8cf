package syncmodel

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const pruneExample = `  # What could go, and what is in use: nothing is deleted
  kubectl inference sync-model prune s3://models/base

  # Delete what nothing refers to, but for the two newest of each model
  kubectl inference sync-model prune s3://models/base --keep 2 --older-than 720h --apply

  # With the credentials of this environment
  kubectl inference sync-model prune s3://models/base --local`

// maxPlan is what fits into an environment variable of a pod.
const maxPlan = 100 << 10

type pruneOptions struct {
	bucketJob
	plan      record.PrunePlan
	olderThan time.Duration
	ignore    []string
}

func newPrune(factory *kube.Factory, streams *term.Streams) *cobra.Command {
	o := &pruneOptions{bucketJob: bucketJob{factory: factory, streams: streams}}
	cmd := &cobra.Command{
		Use:   "prune s3://BUCKET/BASE",
		Short: "Delete the revisions below a base that nothing uses; a dry run by default",
		Long: `Delete the revisions below a base that nothing uses; a dry run by default.

A revision is used where an object of the cluster refers to its place in the
bucket, to a place above or below it, or anywhere to its commit: a
PersistentVolume, claim or StorageClass, a pod or what makes pods (old
ReplicaSets and ControllerRevisions too: a rollback goes there), a ConfigMap, a
Secret (of its values only places in the bucket are looked for, and nothing else
is told), or an object of KServe. You must be able to read all of these in all
namespaces, or nothing is deleted.

Not searched are objects of other kinds, such as your own custom resources, the
releases of Helm, and other clusters that use the bucket: share no base with
them, or give --older-than and --keep with care. In a folder that has a manifest
of its own, a --flat delivery, nothing is looked for.

Kept are also the newest of each model, what a running sync writes, and a
revision without a manifest that changed within a day. The manifest is deleted
first.`,
		Example:           pruneExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              oneLocation("prune", "kubectl inference sync-model prune s3://BUCKET/BASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			if err := o.collect(cmd.Context()); err != nil {
				return err
			}
			return o.run(cmd.Context(), "prune", placeName(o.plan.Location, o.plan.S3Endpoint), o.plan, runner.LocalPrune, o.show)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.plan.Keep, "keep", 1, "how many of the newest complete revisions of each model stay")
	flags.DurationVar(&o.olderThan, "older-than", 0, "spare what changed within this time, such as 720h")
	flags.BoolVar(&o.plan.EvenIfUnread, "even-if-unread", false, "delete although some kinds or namespaces cannot be searched for uses")
	flags.StringArrayVar(&o.ignore, "ignore-reference", nil, "an object whose reference does not count, as it is printed, such as 'PersistentVolume models' (repeatable)")
	flags.BoolVar(&o.plan.Extra, "extra", false, "delete objects below a revision that no sync wrote, too")
	flags.BoolVar(&o.plan.Apply, "apply", false, "delete; without it, only tell what would be deleted")
	o.addFlags(cmd)
	cmd.AddCommand(jobrun.Commands(factory, streams, "prune", &o.out, func(_ context.Context, event record.Event) error { return o.show(event.Result) })...)
	return cmd
}

func (o *pruneOptions) complete(args []string) error {
	o.plan.TypeMeta = record.Meta(record.KindPrunePlan)
	o.plan.Location, o.plan.S3Endpoint, o.plan.S3Region = args[0], o.store.Endpoint, o.store.Region
	o.plan.OlderThanSeconds = o.olderThan.Seconds()
	if err := o.plan.Validate(); err != nil {
		return err
	}
	return o.validate("prune")
}

// collect reads with the user's own rights what the cluster refers to.
func (o *pruneOptions) collect(ctx context.Context) error {
	bucket, _, err := record.SplitLocation(o.plan.Location)
	if err != nil {
		return err
	}
	found, unread, err := collectReferences(ctx, o.factory, bucket)
	if err != nil {
		return err
	}
	o.plan.References = slices.DeleteFunc(found, func(r record.Reference) bool { return slices.Contains(o.ignore, r.Holder) })
	o.plan.Unread = unread
	if o.local {
		return nil
	}
	data, err := json.Marshal(o.plan)
	if err != nil {
		return err
	}
	if len(data) > maxPlan {
		return failure.New(failure.Usage, "run it with --local", "prune %s: %d references are more than a Job can carry", o.plan.Location, len(o.plan.References))
	}
	return nil
}
