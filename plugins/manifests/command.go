// Package manifests is the command that prints the YAML which is compiled into
// the plugin: RBAC, examples and templates.
package manifests

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/manifests"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// New makes the command.
func New(streams *term.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "manifests [NAME...]",
		Short: "Print the built-in YAML: RBAC for each command, examples, templates",
		Long: `Print the built-in YAML: RBAC for each command, examples, templates.

Without a name, the names are listed. A name is a file, or a folder for all that
is in it.`,
		Example: `  # The least rights for all Jobs, in the current namespace
  kubectl inference manifests rbac | kubectl apply -f -

  # The seed platform's scaler
  kubectl inference manifests examples/seed/scaledobject`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(streams.Out, strings.Join(names(), "\n"))
				return err
			}
			var all [][]byte
			for _, name := range args {
				files, err := read(name)
				if err != nil {
					return err
				}
				all = append(all, files...)
			}
			_, err := streams.Out.Write(bytes.Join(all, []byte("---\n")))
			return err
		},
	}
}

// names lists the files without their ending.
func names() []string {
	var all []string
	// The walk is over files in memory and cannot fail.
	_ = fs.WalkDir(manifests.Files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, strings.TrimSuffix(file, ".yaml"))
		}
		return err
	})
	return all
}

// read returns the file called name, or those below it.
func read(name string) ([][]byte, error) {
	name = strings.TrimSuffix(strings.Trim(name, "/"), ".yaml")
	var files [][]byte
	for _, candidate := range names() {
		// A trace is printed alone: it cannot stand between YAML documents.
		below := strings.HasPrefix(candidate, name+"/") && path.Ext(candidate) != ".csv"
		if candidate != name && !below {
			continue
		}
		file := candidate
		if path.Ext(file) == "" {
			file += ".yaml"
		}
		data, err := fs.ReadFile(manifests.Files, file)
		if err != nil {
			return nil, err
		}
		files = append(files, data)
	}
	if len(files) == 0 {
		return nil, failure.New(failure.NotFound, "`kubectl inference manifests` lists the names", "print %q: there is no such manifest", name)
	}
	return files, nil
}
