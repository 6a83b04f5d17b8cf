// Package rollout is the command that serves a verified prefix on GPUs: it
// plans and shows the difference here, and a Job carries it out.
package rollout

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const example = `  # Serve a delivered revision under KServe (or as a Deployment where there is none)
  kubectl inference rollout deepseek-r1-14b --model s3://models/base/OWNER/NAME/SHA --engine-image vllm/vllm-openai:v0.25.1

  # Only show what would change
  kubectl inference rollout deepseek-r1-14b --model s3://models/base/OWNER/NAME/SHA --dry-run

  # Your own object: only its model reference changes
  kubectl inference rollout deepseek-r1-14b --model s3://models/base/OWNER/NAME/SHA -f predictor.yaml`

// Values of --kind.
const (
	kindAuto             = "auto"
	kindInferenceService = "inferenceservice"
	kindDeployment       = "deployment"
)

type options struct {
	factory *kube.Factory
	streams *term.Streams
	job     jobrun.Flags
	store   jobrun.StoreFlags
	out     output.Flags

	name, namespace string
	model           string
	revision        string
	kind            string
	file            string
	verify          string
	engineImage     string
	engineArgs      []string
	engineEnv       map[string]string
	served          string
	cpu, memory     string
	gpus            string
	account         string
	nodeSelector    map[string]string
	limit           time.Duration
	dryRun          bool
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams) *cobra.Command {
	o := &options{factory: factory, streams: streams}
	cmd := &cobra.Command{
		Use:   "rollout NAME --model s3://BUCKET/PREFIX",
		Short: "Serve a verified model prefix on GPUs and measure the cold start",
		Long: `Serve a verified model prefix on GPUs and measure the cold start.

The plan is made here: the objects are sent to the API server as a dry run with
your own rights, and the difference is shown. A Job in the cluster then checks
the prefix against its _MANIFEST.json, applies the objects, follows the pods
until they serve, sends the first request, and saves where the time went in the
ConfigMap inference-coldstart-NAME.`,
		Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failure.New(failure.Usage, "`kubectl inference rollout --help` shows examples", "rollout: give the predictor's NAME, and only that")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.model, "model", "", "s3:// prefix with a _MANIFEST.json, as sync-model prints it")
	flags.StringVar(&o.revision, "revision", "", "commit that the manifest must name (default: any)")
	flags.StringVar(&o.kind, "kind", kindAuto, "what to make: auto, inferenceservice, deployment")
	flags.StringVarP(&o.file, "filename", "f", "", "your own object, in which only the model reference (and what flags say) changes")
	flags.StringVar(&o.verify, "verify", record.VerifyFast, "how to check the prefix: fast (every object), manifest (the manifest alone)")
	flags.StringVar(&o.engineImage, "engine-image", "", "image of vLLM, such as vllm/vllm-openai:v0.25.1")
	flags.StringArrayVar(&o.engineArgs, "engine-arg", nil, "argument for vLLM, such as --engine-arg=--max-num-seqs=40 (repeatable)")
	flags.StringToStringVar(&o.engineEnv, "engine-env", nil, "environment variables of the engine, as NAME=VALUE")
	flags.StringVar(&o.served, "served-model-name", "", "model id that clients name (default NAME; with -f what the object says)")
	flags.StringVar(&o.cpu, "cpu", "", "CPU request of a replica, such as 4")
	flags.StringVar(&o.memory, "memory", "", "memory request and limit of a replica, such as 24Gi")
	flags.StringVar(&o.gpus, "gpus", "", "GPUs of a replica (default 1; with -f what the object says)")
	flags.StringVar(&o.account, "engine-service-account", "", "ServiceAccount of the replicas")
	flags.StringToStringVar(&o.nodeSelector, "node-selector", nil, "labels of the GPU nodes, as KEY=VALUE")
	flags.DurationVar(&o.limit, "rollout-timeout", 30*time.Minute, "when a rollout that is not ready has failed")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the difference and change nothing")
	o.job.AddFlags(cmd, streams)
	o.store.AddFlags(cmd)
	o.out.AddFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{kindAuto, kindInferenceService, kindDeployment}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("verify", cobra.FixedCompletions([]string{record.VerifyFast, record.VerifyManifest}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(jobrun.Commands(factory, streams, "rollout", &o.out, func(_ context.Context, event record.Event) error { return o.show(event) })...)
	return cmd
}

func (o *options) complete(args []string) error {
	o.name = args[0]
	if o.file == "" && o.gpus == "" {
		o.gpus = "1"
	}
	namespace, err := o.factory.Namespace()
	o.namespace = namespace
	return err
}

var location = regexp.MustCompile(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^/]+)+$`)

func (o *options) validate() error {
	if problems := validation.IsDNS1035Label(o.name); len(problems) > 0 {
		return failure.New(failure.Usage, "", "read NAME: %q: %s", o.name, strings.Join(problems, "; "))
	}
	o.model = strings.TrimRight(o.model, "/")
	if o.model == "" {
		return failure.New(failure.Usage, "give --model s3://BUCKET/PREFIX; sync-model prints it when it is done", "rollout %s: no model given", o.name)
	}
	if !location.MatchString(o.model) {
		return failure.New(failure.Usage, "write it as s3://BUCKET/PREFIX", "read --model: %q is not an S3 prefix", o.model)
	}
	if o.revision != "" && !record.IsCommit(o.revision) {
		return failure.New(failure.Usage, "a commit is 40 hexadecimal digits", "read --revision: %q is not a commit", o.revision)
	}
	switch o.kind {
	case kindAuto, kindInferenceService, kindDeployment:
	default:
		return failure.New(failure.Usage, "use auto, inferenceservice or deployment", "read --kind: %q is not known", o.kind)
	}
	switch o.verify {
	case record.VerifyFast, record.VerifyManifest:
	default:
		return failure.New(failure.Usage, "use fast or manifest", "read --verify: %q is not known", o.verify)
	}
	if o.file != "" && o.kind != kindAuto {
		return failure.New(failure.Usage, "leave out --kind", "rollout %s: with -f the file says what kind it is", o.name)
	}
	if o.file == "" && o.engineImage == "" {
		return failure.New(failure.Usage, "give --engine-image, such as vllm/vllm-openai:v0.25.1, or your own object with -f", "rollout %s: no engine image given", o.name)
	}
	for flag, value := range map[string]string{"--cpu": o.cpu, "--memory": o.memory, "--gpus": o.gpus} {
		if value == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return failure.New(failure.Usage, "write it as 4, 500m or 24Gi", "read %s: %q is not a quantity", flag, value)
		}
		if quantity.Sign() < 0 || (flag == "--gpus" && quantity.MilliValue()%1000 != 0) {
			return failure.New(failure.Usage, "", "read %s: %q is not a number of what a node has", flag, value)
		}
	}
	for _, secret := range o.store.SecretEnv() {
		if _, twice := o.engineEnv[secret.Name]; twice {
			return failure.New(failure.Usage, "leave out one of the two", "read --engine-env: %s comes from --s3-secret", secret.Name)
		}
	}
	if o.limit <= 0 {
		return failure.New(failure.Usage, "", "read --rollout-timeout: it must be above 0")
	}
	for _, check := range []func() error{o.out.Validate, o.store.Validate} {
		if err := check(); err != nil {
			return err
		}
	}
	if o.dryRun {
		return nil
	}
	return o.job.Validate()
}
