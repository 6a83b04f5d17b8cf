package syncmodel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/jobs/signing"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// syncAccount is the ServiceAccount that reaches the bucket: verify and prune
// work with the identity of the sync unless another is named.
const syncAccount = "inference-sync"

// bucketJob is what verify and prune share: a Job, or a run from here, that
// works on a bucket and prints a document.
type bucketJob struct {
	factory *kube.Factory
	streams *term.Streams
	job     jobrun.Flags
	store   jobrun.StoreFlags
	network jobrun.NetworkFlags
	place   jobrun.PlacementFlags
	out     output.Flags
	local   bool
}

func (b *bucketJob) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&b.local, "local", false, "run here instead of in a Job, with the AWS credentials of this environment")
	b.job.AddFlags(cmd, b.streams)
	b.store.AddFlags(cmd)
	b.network.AddFlags(cmd)
	b.place.AddFlags(cmd)
	b.out.AddFlags(cmd)
	flags.Lookup("service-account").Usage = "ServiceAccount of the Job (default " + syncAccount + ")"
}

func (b *bucketJob) validate(what string) error {
	for _, check := range []func() error{b.out.Validate, b.store.Validate, b.network.Validate, b.place.Validate} {
		if err := check(); err != nil {
			return err
		}
	}
	if !b.local {
		return b.job.Validate()
	}
	if b.store.Secret != "" {
		return failure.New(failure.Usage, "set the AWS variables in this environment instead", "%s: --local does not read Secrets of a cluster", what)
	}
	if flag := b.network.JobOnly(); flag != "" {
		return failure.New(failure.Usage, "leave it out, or leave out --local", "read %s: it is for a Job, not for --local", flag)
	}
	return nil
}

// environment is this process's, with the certificates of --ca-bundle.
func (b *bucketJob) environment(name string) string {
	if name == jobrun.CAEnv && b.network.PEM() != "" {
		return b.network.PEM()
	}
	return b.streams.Env(name)
}

// run carries plan out and shows its document; a document can come with an
// error, where the answer is "no".
func (b *bucketJob) run(ctx context.Context, command, name string, plan any, local localRun, show func(json.RawMessage) error) error {
	if b.local {
		data, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		view := jobrun.NewView(b.streams)
		result, err := local(ctx, b.environment, data, view.Event)
		view.Close()
		if len(result) == 0 {
			return interrupted(ctx, err, leftBy[command], "%s", command)
		}
		return errors.Join(show(result), err)
	}
	namespace, err := b.factory.Namespace()
	if err != nil {
		return err
	}
	spec := jobrun.Spec{Command: command, Run: name, Namespace: namespace, Plan: plan, SecretEnv: b.store.SecretEnv()}
	b.job.Apply(&spec)
	b.network.Apply(&spec)
	b.place.Apply(&spec)
	if spec.ServiceAccount == "" {
		spec.ServiceAccount = syncAccount
	}
	event, err := b.job.Run(ctx, b.factory, b.streams, spec, true)
	switch {
	case event == nil:
		return err
	case len(event.Result) > 0:
		return errors.Join(show(event.Result), err)
	case err != nil:
		return err
	}
	return failure.New(failure.NotFound, "run it again", "show the result: the Job is complete, but its log is gone and its result was too large to keep")
}

// leftBy says what is left of a command that was interrupted.
var leftBy = map[string]string{
	"verify": "nothing was changed; run it again",
	"prune":  "what was deleted until then is gone, its manifests first; run it again to go on",
}

type localRun func(context.Context, func(string) string, []byte, func(record.Event)) (json.RawMessage, error)

const verifyExample = `  # Nightly: sizes, checksums and metadata of every object, no data is read
  kubectl inference sync-model verify s3://models/base/OWNER/NAME/SHA

  # Every byte is read and hashed again
  kubectl inference sync-model verify s3://models/base/OWNER/NAME/SHA --full

  # The files must be the ones that were signed
  kubectl inference sync-model verify s3://models/base/OWNER/NAME/SHA --key signing-key.pub.pem

  # From here, as data
  kubectl inference sync-model verify s3://models/base/OWNER/NAME/SHA --local -o json

  # As a CronJob
  kubectl inference manifests examples/verify-cronjob`

type verifyOptions struct {
	bucketJob
	plan       record.VerifyPlan
	fast, full bool
	keyFile    string
}

func newVerify(factory *kube.Factory, streams *term.Streams) *cobra.Command {
	o := &verifyOptions{bucketJob: bucketJob{factory: factory, streams: streams}}
	cmd := &cobra.Command{
		Use:   "verify s3://BUCKET/PREFIX",
		Short: "Compare a prefix with its manifest: missing, changed and extra files",
		Long: `Compare a prefix with its manifest: missing, changed and extra files.

The prefix is the sync's location, with _MANIFEST.json directly below it. It must
hold exactly what the manifest lists. Exit code 0 says that it does, 3 that it
does not; the differences are listed.

--fast trusts the checksums that the store computed when the objects were
written, and reads no data. --full reads every object and hashes it again, which
also finds damage on the store's own disks.`,
		Example:           verifyExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              oneLocation("verify", "kubectl inference sync-model verify s3://BUCKET/PREFIX"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context(), "verify", verifyName(o.plan), o.plan, runner.LocalVerify, o.show)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.fast, "fast", false, "compare sizes, checksums and metadata, read no data (the default)")
	flags.BoolVar(&o.full, "full", false, "read every object and hash it")
	flags.StringVar(&o.keyFile, "key", "", "file with the public key (PEM) of which the prefix must hold a signature over these files")
	flags.IntVar(&o.plan.Parallel, "parallel", 0, "objects in flight (default 8)")
	o.addFlags(cmd)
	cmd.AddCommand(jobrun.Commands(factory, streams, "verify", &o.out, func(_ context.Context, event record.Event) error { return o.show(event.Result) })...)
	return cmd
}

// oneLocation is the rule of commands that work on one place in a bucket.
func oneLocation(what, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return failure.New(failure.Usage, "name the place in the bucket: `"+usage+"`", "%s: give one s3://BUCKET/PREFIX", what)
		}
		return nil
	}
}

func (o *verifyOptions) complete(args []string) error {
	o.plan.TypeMeta = record.Meta(record.KindVerifyPlan)
	o.plan.Location, o.plan.S3Endpoint, o.plan.S3Region = args[0], o.store.Endpoint, o.store.Region
	if o.fast && o.full {
		return failure.New(failure.Usage, "--full does all that --fast does", "verify: --fast and --full exclude each other")
	}
	o.plan.Mode = record.VerifyFast
	if o.full {
		o.plan.Mode = record.VerifyFull
	}
	if o.keyFile != "" {
		key, err := readKey("--key", o.keyFile)
		if err != nil {
			return err
		}
		if _, err := signing.ParseVerifier(key); err != nil {
			return failure.Wrap(err, "read --key %s", o.keyFile)
		}
		o.plan.Key = string(key)
	}
	if err := o.plan.Validate(); err != nil {
		return err
	}
	return o.validate("verify")
}

// maxKey is beyond any key in PEM.
const maxKey = 64 << 10

// readKey reads a key's file.
func readKey(flag, file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && (info.IsDir() || info.Size() > maxKey) {
		return nil, failure.New(failure.Usage, "give a file in PEM", "read %s: %s is not a key", flag, file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, failure.New(failure.Usage, "give a file in PEM", "read %s: %w", flag, err)
	}
	return data, nil
}

// verifyName names the run of a plan, so that a second start finds the first.
func verifyName(plan record.VerifyPlan) string {
	return placeName(plan.Location, plan.S3Endpoint, plan.Mode, plan.Key)
}

// placeName is the name of a run on a place: words that a person knows again,
// and a digest of all that makes it another run.
func placeName(location string, more ...string) string {
	name := path.Base(strings.TrimRight(location, "/"))
	if record.IsCommit(name) {
		name = path.Base(path.Dir(strings.TrimRight(location, "/")))
	}
	name = strings.Trim(unfit.ReplaceAllString(strings.ToLower(name), "-"), "-")
	name = strings.TrimRight(name[:min(len(name), 28)], "-")
	sum := sha256.Sum256([]byte(strings.Join(append([]string{location}, more...), "\x00")))
	return strings.TrimLeft(name+"-"+hex.EncodeToString(sum[:4]), "-")
}
