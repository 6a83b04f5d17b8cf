// Package cli is the command line of the lab.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/lab/build"
	"github.com/kubectl-inference/kubectl-inference/test/lab/cluster"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/process"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// Environment is what the command line takes from its process.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time
}

// flags are those that all commands share.
type flags struct {
	dir, source string
	hpaSync     time.Duration
	timeout     time.Duration
	gpus        int
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, env Environment, args []string) int {
	root := New(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	_, _ = fmt.Fprint(env.Err, failure.Text(err))
	if tail := process.TailOf(err); tail != "" {
		_, _ = fmt.Fprintf(env.Err, "the last lines of its log:\n%s\n", tail)
	}
	return failure.ExitCode(err)
}

// exitCode is the exit code of a command that ran and spoke for itself.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// New returns the command tree.
func New(env Environment) *cobra.Command {
	f := &flags{}
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real Kubernetes cluster with KEDA, Prometheus, S3 and fake GPUs, in namespaces of its own",
		Long: `A real Kubernetes cluster with KEDA, Prometheus, S3 and fake GPUs, in namespaces of its own.

Environment:
  LAB_DIR         where everything is kept (default .lab in the repository)
  LAB_KUBECONFIG  use this cluster instead of starting one; KEDA and Prometheus must be there
  LAB_PROMETHEUS  the URL of its Prometheus
  LAB_HPA_SYNC    how often the HPA controller looks (default 15s)`,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.PersistentFlags().StringVar(&f.dir, "dir", "", "the lab's directory (default $LAB_DIR, or .lab in the repository)")
	root.PersistentFlags().StringVar(&f.source, "source", "", "the repository (default: found from the working directory)")
	root.AddCommand(upCommand(env, f), downCommand(env, f), buildCommand(env, f), statusCommand(env, f), kubeconfigCommand(env, f), execCommand(env, f), checkCommand(env, f))
	root.AddCommand(insideCommands(env, f)...)
	return root
}

// options reads flags and environment.
func (f *flags) options(env Environment) (cluster.Options, error) {
	o := cluster.Options{
		Report: cluster.NewReport(env.Err, env.Now), Kubeconfig: env.Getenv("LAB_KUBECONFIG"), Prometheus: env.Getenv("LAB_PROMETHEUS"),
		HPASync: f.hpaSync, Timeout: f.timeout, GPUs: f.gpus, Source: f.source,
	}
	if text := env.Getenv("LAB_HPA_SYNC"); text != "" && o.HPASync == 0 {
		var err error
		if o.HPASync, err = time.ParseDuration(text); err != nil {
			return o, failure.New(failure.Usage, "a duration such as 5s", "read LAB_HPA_SYNC: %w", err)
		}
	}
	if o.Source == "" {
		dir, err := os.Getwd()
		if err != nil {
			return o, fmt.Errorf("find source: %w", err)
		}
		if o.Source, err = build.Root(dir); err != nil {
			return o, err
		}
	}
	var err error
	o.Layout, err = f.layout(env, o.Source)
	return o, err
}

func (f *flags) layout(env Environment, source string) (layout.Layout, error) {
	dir := f.dir
	if dir == "" {
		dir = env.Getenv("LAB_DIR")
	}
	if dir == "" {
		dir = filepath.Join(source, ".lab")
	}
	return layout.At(dir)
}

// exitOf turns the error of a command that ran inside into its exit code.
func exitOf(err error) error {
	if code, ok := sandbox.ExitCode(err); ok {
		return exitCode(code)
	}
	return err
}
