// Package root is the command tree: the flags that all commands share, the
// groups of the help, and the one place where an error becomes text and an
// exit code.
package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// Name is the plugin's name: `kubectl NAME`. The binary is kubectl-NAME.
const Name = "inference"

const (
	groupLoop = "loop"
	groupWhy  = "why"
	groupHelp = "help"
)

const exitCodes = `Exit codes:
  0    done
  1    failed
  2    bad input, nothing was started
  3    done, and the answer is no: objects differ, an objective is not met
  4    not permitted
  5    not found: the named object, or the API it belongs to
  6    a server did not answer
  124  --timeout ran out
  130  interrupted`

// Execute runs one command line (without the program's name) and returns the
// exit code.
func Execute(ctx context.Context, args []string, streams *term.Streams, version string) int {
	cmd := New(streams, version)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	// The reader of a pipe went away, as head does: nothing is wrong.
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return 0
	}
	if text := failure.Text(err); failure.KindOf(err) != failure.Interrupted || failure.HintOf(err) != "" {
		fmt.Fprint(streams.Err, text)
	}
	return failure.ExitCode(err)
}

// New builds the command tree. No client is made and no file is read.
func New(streams *term.Streams, version string) *cobra.Command {
	factory := kube.NewFactory(version, &warnings{streams: streams, said: map[string]bool{}})
	color := colorFlag{mode: term.ColorAuto, apply: streams.SetColor}

	// The steps of the loop are listed in their order, not by the alphabet.
	cobra.EnableCommandSorting = false
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Capacity engineering for LLM inference on Kubernetes",
		Long: `Capacity engineering for LLM inference on Kubernetes: deliver a pinned model
revision, measure what one replica carries, turn the measurement into scaling
thresholds, and explain every scaling decision.`,
		Example: `  # Is the model in the bucket exactly the pinned revision?
  kubectl inference sync-model OWNER/NAME --revision SHA --to s3://models/base

  # Why are there N replicas right now?
  kubectl inference explain-scaling isvc/deepseek-r1-14b`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + Name},
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// So that "exlpain-scaling" is near enough to be suggested.
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetIn(streams.In)
	cmd.SetOut(writerFunc(func(p []byte) (int, error) { return streams.Out.Write(p) }))
	cmd.SetErr(writerFunc(func(p []byte) (int, error) { return streams.Err.Write(p) }))
	cmd.SetVersionTemplate("kubectl inference {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return failure.New(failure.Usage, "`"+cmd.CommandPath()+" --help` lists the flags", "read flags: %w", err)
	})
	cmd.AddGroup(
		&cobra.Group{ID: groupLoop, Title: "The loop:"},
		&cobra.Group{ID: groupWhy, Title: "Look and repair:"},
		&cobra.Group{ID: groupHelp, Title: "Help:"},
	)
	cmd.SetHelpCommandGroupID(groupHelp)
	cmd.SetCompletionCommandGroupID(groupHelp)

	factory.AddFlags(cmd.PersistentFlags())
	cmd.PersistentFlags().Var(&color, "color", "use colour: "+strings.Join(term.ColorModes(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(term.ColorModes(), cobra.ShellCompDirectiveNoFileComp))

	add(cmd, groupLoop, loopCommands(factory, streams, version)...)
	add(cmd, groupWhy, whyCommands(factory, streams)...)
	cmd.AddCommand(optionsCommand(cmd))
	cmd.SetUsageTemplate(usageTemplate(cmd.UsageTemplate()))
	return cmd
}

// usageTemplate shortens cobra's: the twenty flags of a kubeconfig would bury
// those of the command, so they have a page of their own, as in kubectl.
func usageTemplate(template string) string {
	const inherited = "{{if .HasAvailableInheritedFlags}}"
	const own = "{{if .HasAvailableLocalFlags}}"
	before, rest, found := strings.Cut(template, inherited)
	_, after, closed := strings.Cut(rest, "{{end}}")
	if !found || !closed {
		return template
	}
	before = strings.Replace(before, own, "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	return before + after + `
Use "kubectl ` + Name + ` options" for the flags that all commands have, such as -n and --context.
{{if not .HasParent}}
` + exitCodes + `
{{end}}`
}

// optionsCommand lists the flags that all commands have.
func optionsCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags that all commands have",
		GroupID: groupHelp,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Flags that all commands have:\n\n%s", root.PersistentFlags().FlagUsages())
			return err
		},
	}
}

func add(parent *cobra.Command, group string, commands ...*cobra.Command) {
	for _, cmd := range commands {
		cmd.GroupID = group
		parent.AddCommand(cmd)
	}
}

// noArguments refuses a word that is not a command, and names the near ones.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "`" + cmd.CommandPath() + " --help` lists the commands"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean `" + cmd.CommandPath() + " " + near[0] + "`?"
	}
	return failure.New(failure.Usage, hint, "run %q: there is no such command", args[0])
}

// colorFlag applies --color as soon as it is parsed, so that errors about
// later flags are coloured, or not, as asked.
type colorFlag struct {
	mode  term.ColorMode
	apply func(term.ColorMode)
}

func (c *colorFlag) String() string { return string(c.mode) }
func (c *colorFlag) Type() string   { return "when" }
func (c *colorFlag) Set(value string) error {
	if !slices.Contains(term.ColorModes(), value) {
		return fmt.Errorf("use one of %s", strings.Join(term.ColorModes(), ", "))
	}
	c.mode = term.ColorMode(value)
	c.apply(c.mode)
	return nil
}

// warnings passes the API server's warning headers to standard error, once
// each: a dry run and the change after it bring the same ones.
type warnings struct {
	streams *term.Streams
	mutex   sync.Mutex
	said    map[string]bool
}

func (w *warnings) HandleWarningHeader(code int, _ string, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if code != 299 || text == "" || w.said[text] {
		return
	}
	w.said[text] = true
	w.streams.Warn("%s", text)
}

var _ rest.WarningHandler = (*warnings)(nil)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var _ io.Writer = writerFunc(nil)
