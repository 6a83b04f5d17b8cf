package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/test/lab/cluster"
	"github.com/kubectl-inference/kubectl-inference/test/lab/layout"
	"github.com/kubectl-inference/kubectl-inference/test/lab/sandbox"
)

// inherited is how many descriptors go from Up by way of Init to Supervise.
const inherited = 3

// insideCommands are what the lab runs of itself in its namespaces.
func insideCommands(env Environment, f *flags) []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "init", Hidden: true, Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				var files []*os.File
				for i := range inherited {
					files = append(files, os.NewFile(uintptr(3+i), "inherited"))
				}
				code, err := sandbox.Init(layout.Layout(f.dir), args[0], args[1:], files)
				if err != nil {
					return err
				}
				return exitCode(code)
			},
		},
		{
			Use: "supervise", Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return cluster.Supervise(cmd.Context(), env.Now) },
		},
		{
			Use: "load-images", Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return cluster.LoadImages(cmd.Context()) },
		},
		{
			Use: "run", Hidden: true, Args: cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return cluster.Run(args) },
		},
	}
}
