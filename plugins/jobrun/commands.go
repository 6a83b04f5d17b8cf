package jobrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// Commands returns attach, list, get and cancel for the Jobs of one command.
// show prints the result of a Job that ended well, in the format of out. bench
// keeps its reports itself and so has a get of its own. attach draws progress
// with the command's Screen where there is one.
func Commands(factory *kube.Factory, streams *term.Streams, command string, out *output.Flags, show func(context.Context, record.Event) error, screen ...Screen) []*cobra.Command {
	r := runs{factory: factory, streams: streams, command: command, out: out, show: show}
	if len(screen) > 0 {
		r.screen = screen[0]
	}
	commands := []*cobra.Command{r.attach(), r.list(), r.cancel()}
	if command != "bench" {
		commands = append(commands, r.get())
	}
	return commands
}

type runs struct {
	factory *kube.Factory
	streams *term.Streams
	command string
	out     *output.Flags
	screen  Screen
	show    func(context.Context, record.Event) error
}

func (r runs) attach() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "attach RUN",
		Short:             "Follow a run that is under way, or show how it ended",
		Example:           fmt.Sprintf("  kubectl inference %s attach RUN", commandName(r.command)),
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
			client, err := r.factory.Clientset()
			if err != nil {
				return err
			}
			view := NewView(r.streams).WithScreen(r.screen)
			event, err := newJobs(client).Follow(cmd.Context(), job, view)
			view.Close()
			return r.end(cmd.Context(), spec, event, leave(err, spec))
		},
	}
	r.out.AddFlags(cmd)
	return cmd
}

// end shows what a run left behind: a run whose answer is "no" has a result too.
func (r runs) end(ctx context.Context, spec Spec, event record.Event, err error) error {
	if len(event.Result) > 0 {
		return errors.Join(r.show(ctx, event), err)
	}
	if err != nil {
		return err
	}
	hint := ""
	if spec.Command == "bench" {
		hint = fmt.Sprintf("`kubectl inference bench get %s -n %s` prints its report", spec.Run, spec.Namespace)
	}
	return failure.New(failure.NotFound, hint, "show run %s: it is complete, but its log and its last words are gone", spec.Run)
}

func (r runs) cancel() *cobra.Command {
	return &cobra.Command{
		Use:               "cancel RUN",
		Short:             "Stop a run and remove its Job",
		Example:           fmt.Sprintf("  kubectl inference %s cancel RUN", commandName(r.command)),
		Args:              oneRun,
		ValidArgsFunction: r.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, job, err := r.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			client, err := r.factory.Clientset()
			if err != nil {
				return err
			}
			if err := newJobs(client).remove(cmd.Context(), job); err != nil {
				return err
			}
			r.streams.Say("removed job/%s in namespace %s", job.Name, job.Namespace)
			return nil
		},
	}
}

func (r runs) find(ctx context.Context, run string) (Spec, *batchv1.Job, error) {
	if err := ValidateRun(run); err != nil {
		return Spec{}, nil, err
	}
	namespace, err := r.factory.Namespace()
	if err != nil {
		return Spec{}, nil, err
	}
	client, err := r.factory.Clientset()
	if err != nil {
		return Spec{}, nil, err
	}
	spec := Spec{Command: r.command, Run: run, Namespace: namespace}
	job, err := client.BatchV1().Jobs(namespace).Get(ctx, spec.Name(), metav1.GetOptions{})
	if err != nil {
		err = kube.Explain(err, "get run %s in namespace %s", run, namespace)
		if failure.KindOf(err) == failure.NotFound {
			err = failure.New(failure.NotFound, fmt.Sprintf("`kubectl inference %s list -A` lists the runs", commandName(r.command)), "get run %s: there is none in namespace %s", run, namespace)
		}
		return Spec{}, nil, err
	}
	return spec, job, nil
}

// complete lists the names of the runs, silently and quickly.
func (r runs) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	jobs, err := r.jobs(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	for _, job := range jobs {
		names = append(names, job.Labels[LabelRun])
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func oneRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return failure.New(failure.Usage, "`"+cmd.Parent().CommandPath()+" list` lists the runs", "%s: give the name of one run", cmd.CommandPath())
	}
	return nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.New(failure.Usage, "", "%s: takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}
