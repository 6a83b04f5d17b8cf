package jobrun

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// silent follows a run without showing it.
type silent struct{}

func (silent) Event(record.Event) {}
func (silent) Waiting(string)     {}

// get prints what a run that has ended left behind: the result alone, without
// the story that attach tells. The exit code is the run's own.
func (r runs) get() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "get RUN",
		Short:             "Print the result of a run that has ended",
		Example:           fmt.Sprintf("  kubectl inference %s get RUN -o json", commandName(r.command)),
		Args:              oneRun,
		ValidArgsFunction: r.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.out.Validate(); err != nil {
				return err
			}
			spec, job, err := r.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if ended(job) == nil {
				return failure.New(failure.Failed, "follow it: "+attachCommand(spec), "get run %s: it has not ended", spec.Run)
			}
			client, err := r.factory.Clientset()
			if err != nil {
				return err
			}
			event, err := newJobs(client).Follow(cmd.Context(), job, silent{})
			return r.end(cmd.Context(), spec, event, err)
		},
	}
	r.out.AddFlags(cmd)
	return cmd
}
