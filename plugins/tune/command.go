// Package tune is the command that turns an envelope into thresholds on the
// object that keeps them.
package tune

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

const example = `  # What would the measurement change? Nothing is changed yet.
  kubectl inference envelope deepseek-r1-14b -o json > envelope.json
  kubectl inference tune isvc/deepseek-r1-14b --from envelope.json

  # Change it, and keep the plan to take it back
  kubectl inference tune isvc/deepseek-r1-14b --from envelope.json --apply -o json > plan.json
  kubectl inference tune --undo plan.json --apply`

type options struct {
	factory *kube.Factory
	streams *term.Streams
	out     output.Flags

	target   []string
	from     string
	shape    string
	undo     string
	apply    bool
	managed  bool
	settling time.Duration
	pace     pace
}

// New makes the command.
func New(factory *kube.Factory, streams *term.Streams) *cobra.Command {
	return command(&options{factory: factory, streams: streams, pace: pace{look: 500 * time.Millisecond, settled: 3 * time.Second}})
}

func command(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tune TYPE/NAME --from ENVELOPE",
		Short: "Turn an envelope into thresholds on the object that keeps them",
		Long: `Turn an envelope into thresholds on the object that keeps them.

The change is a JSON patch with tests, so it fails when somebody changed the
trigger in between. It is tried as a server-side dry run first and shown as a
difference. Nothing is changed without --apply, which then waits until KEDA and
the HPA have the change and keep it.

A trigger is changed only where its query gives the number that was measured,
and where the envelope has evidence for it; the others are kept, with the reason.
On a service of KServe that makes its own scaler, the change goes to the service.`,
		Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.target = args
			if err := o.validate(); err != nil {
				return err
			}
			if o.undo != "" {
				return o.runUndo(cmd.Context())
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.from, "from", "", "file with a CapacityEnvelope, as \"kubectl inference envelope -o json\" prints it; - for standard input")
	flags.StringVar(&o.shape, "shape", "", "which shape of the envelope, as PROMPT/OUTPUT tokens (default its only one)")
	flags.StringVar(&o.undo, "undo", "", "file with the TuningPlan to take back")
	flags.BoolVar(&o.apply, "apply", false, "make the change")
	flags.BoolVar(&o.managed, "even-if-managed", false, "make it although a GitOps tool may write over it")
	flags.DurationVar(&o.settling, "settle-timeout", time.Minute, "how long to wait until KEDA and the HPA have the change")
	o.out.AddFlags(cmd)
	return cmd
}

func (o *options) validate() error {
	switch {
	case o.undo != "" && (len(o.target) > 0 || o.from != ""):
		return failure.New(failure.Usage, "the plan names its own target", "tune: --undo takes neither a target nor --from")
	case o.undo == "" && len(o.target) == 0:
		return failure.New(failure.Usage, "give a target such as isvc/NAME or so/NAME", "tune: there is no target")
	case o.undo == "" && o.from == "":
		return failure.New(failure.Usage, "measure first: `kubectl inference bench`, then `kubectl inference envelope RUN -o json > envelope.json`", "tune: thresholds need evidence, give --from ENVELOPE")
	case o.settling <= 0:
		return failure.New(failure.Usage, "", "read --settle-timeout: it must be above 0")
	}
	return o.out.Validate()
}
