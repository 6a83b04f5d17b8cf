package cli

import (
	"fmt"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/cluster"
)

func upCommand(env Environment, f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "up", Short: "Build what is missing, start the lab, and wait until it works", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			start := env.Now()
			lab, err := cluster.Up(cmd.Context(), o)
			if err != nil {
				return err
			}
			o.Report.Note("%-28s %6.1fs", "ready", env.Now().Sub(start).Seconds())
			_, err = fmt.Fprintf(env.Out, "export KUBECONFIG=%s\n", lab.Kubeconfig)
			return err
		},
	}
	cmd.Flags().DurationVar(&f.hpaSync, "hpa-sync", 0, "how often the HPA controller looks (default $LAB_HPA_SYNC, or 15s)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 3*time.Minute, "how long the start may take, without the builds")
	cmd.Flags().IntVar(&f.gpus, "gpus", 6, "how many nvidia.com/gpu the node has")
	return cmd
}

func downCommand(env Environment, f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop the lab and leave nothing but what was built and the logs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			start := env.Now()
			running, err := cluster.Down(cmd.Context(), o)
			if err != nil {
				return err
			}
			if !running {
				o.Report.Note("the lab is not up")
				return nil
			}
			o.Report.Note("%-28s %6.1fs", "down", env.Now().Sub(start).Seconds())
			return nil
		},
	}
}

func buildCommand(env Environment, f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "build [PROGRAM...]", Short: "Build the programs and images, or the named programs alone, without starting anything",
		RunE: func(cmd *cobra.Command, names []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			if len(names) > 0 {
				return cluster.BuildPrograms(cmd.Context(), o, names)
			}
			_, err = cluster.Build(cmd.Context(), o)
			return err
		},
	}
}

func kubeconfigCommand(env Environment, f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the lab's kubeconfig", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			path := o.Layout.Kubeconfig()
			if o.Kubeconfig != "" {
				path = o.Layout.Elsewhere()
			}
			if _, err := os.Stat(path); err != nil {
				return failure.New(failure.NotFound, "start it: lab up", "find kubeconfig: the lab is not up")
			}
			_, err = fmt.Fprintln(env.Out, path)
			return err
		},
	}
}

func statusCommand(env Environment, f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether the lab is up, and its servers", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			state, err := cluster.Status(o.Layout)
			if err != nil {
				return err
			}
			if !state.Running {
				return failure.New(failure.NotFound, "start it: lab up", "find lab: it is not up")
			}
			w := tabwriter.NewWriter(env.Out, 0, 8, 2, ' ', 0)
			_, _ = fmt.Fprintf(w, "lab\tup, process %d\nkubeconfig\t%s\nAPI server\t%s\nPrometheus\t%s\n\nSERVER\tPROCESS\tRESTARTS\n",
				state.PID, state.Kubeconfig, state.Server, state.Prometheus)
			for _, c := range state.Components {
				_, _ = fmt.Fprintf(w, "%s\t%d\t%d\n", c.Name, c.PID, c.Restarts)
			}
			return w.Flush()
		},
	}
}

func execCommand(env Environment, f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "exec -- COMMAND [ARG...]", Short: "Run a command inside the lab's namespaces, with its kubectl", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			cmd := &exec.Cmd{Stdin: env.In, Stdout: env.Out, Stderr: env.Err}
			return exitOf(cluster.Exec(o.Layout, cmd, args))
		},
	}
}

func checkCommand(env Environment, f *flags) *cobra.Command {
	return &cobra.Command{
		Use: "check-clean", Short: "Check that a lab which was taken down has left nothing", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			o, err := f.options(env)
			if err != nil {
				return err
			}
			if err := cluster.Check(o.Layout); err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.Out, "nothing is left: no state, process, mount or bridge")
			return err
		},
	}
}
