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

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

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
