package jobrun

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// Commands returns attach, list and cancel for the Jobs of one command.
// show prints the result of a Job that ended well.
func Commands(factory *kube.Factory, streams *term.Streams, command string, show func(context.Context, record.Event) error) []*cobra.Command {
	r := runs{factory: factory, streams: streams, command: command, show: show}
	return []*cobra.Command{r.attach(), r.list(), r.cancel()}
}

type runs struct {
	factory *kube.Factory
	streams *term.Streams
	command string
	show    func(context.Context, record.Event) error
}

func (r runs) attach() *cobra.Command {
	return &cobra.Command{
		Use:               "attach RUN",
		Short:             "Follow a run that is under way, or show how it ended",
		Example:           fmt.Sprintf("  kubectl inference %s attach RUN", commandName(r.command)),
		Args:              oneRun,
		ValidArgsFunction: r.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, job, err := r.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			client, err := r.factory.Clientset()
			if err != nil {
				return err
			}
			view := NewView(r.streams)
			event, err := Follow(cmd.Context(), client, job, view)
			view.Close()
			if err != nil {
				return leave(err, spec)
			}
			return r.show(cmd.Context(), event)
		},
	}
}

func (r runs) cancel() *cobra.Command {
	return &cobra.Command{
		Use:               "cancel RUN",
		Short:             "Stop a run and remove its Job",
		Example:           fmt.Sprintf("  kubectl inference %s cancel RUN", commandName(r.command)),
		Args:              oneRun,
		ValidArgsFunction: r.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, job, err := r.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			client, err := r.factory.Clientset()
			if err != nil {
				return err
			}
			if err := remove(cmd.Context(), client, job); err != nil {
				return err
			}
			r.streams.Say("removed job/%s in namespace %s", job.Name, job.Namespace)
			return nil
		},
	}
}

func (r runs) get(ctx context.Context, run string) (Spec, *batchv1.Job, error) {
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

// RunList is the document of `list`.
type RunList struct {
	record.TypeMeta `json:",inline"`
	Items           []Run `json:"items"`
}

// Run is one run of a RunList. State is Running, Complete or Failed.
type Run struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	State     string    `json:"state"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"duration_seconds"`
}

func (r runs) list() *cobra.Command {
	var all bool
	var flags output.Flags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the runs",
		Example: fmt.Sprintf("  kubectl inference %s list -A", commandName(r.command)),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.Validate(); err != nil {
				return err
			}
			jobs, err := r.jobs(cmd.Context(), all)
			if err != nil {
				return err
			}
			list := runList(jobs, time.Now())
			if len(list.Items) == 0 && flags.Human() {
				r.streams.Say("no runs found")
				return nil
			}
			return flags.Print(r.streams.Out, list, func(w io.Writer) error { return list.table(all).Write(w, "") })
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the runs of all namespaces")
	flags.AddFlags(cmd)
	return cmd
}

func (r runs) jobs(ctx context.Context, all bool) ([]batchv1.Job, error) {
	namespace, err := r.factory.Namespace()
	if err != nil {
		return nil, err
	}
	if all {
		namespace = ""
	}
	client, err := r.factory.Clientset()
	if err != nil {
		return nil, err
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("%s=kubectl-inference,%s=%s", LabelName, LabelComponent, r.command)})
	if err != nil {
		return nil, kube.Explain(err, "list jobs")
	}
	return jobs.Items, nil
}

func runList(jobs []batchv1.Job, now time.Time) RunList {
	list := RunList{TypeMeta: record.Meta("RunList"), Items: []Run{}}
	for _, job := range jobs {
		run := Run{Name: job.Labels[LabelRun], Namespace: job.Namespace, State: "Running", Started: job.CreationTimestamp.UTC()}
		end := now
		if condition := ended(&job); condition != nil {
			run.State, end = string(condition.Type), condition.LastTransitionTime.Time
		}
		run.Seconds = end.Sub(run.Started).Round(time.Second).Seconds()
		list.Items = append(list.Items, run)
	}
	slices.SortFunc(list.Items, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), b.Started.Compare(a.Started), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (l RunList) table(all bool) output.Table {
	table := output.Table{Header: []string{"RUN", "STATE", "STARTED", "DURATION"}}
	if all {
		table.Header = append([]string{"NAMESPACE"}, table.Header...)
	}
	for _, run := range l.Items {
		row := []string{run.Name, run.State, run.Started.Format(time.RFC3339), duration.HumanDuration(time.Duration(run.Seconds * float64(time.Second)))}
		if all {
			row = append([]string{run.Namespace}, row...)
		}
		table.Rows = append(table.Rows, row)
	}
	return table
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
