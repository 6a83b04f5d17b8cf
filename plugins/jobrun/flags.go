package jobrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// ImageEnv names the job image where no --image is given.
const ImageEnv = "KUBECTL_INFERENCE_IMAGE"

// Flags are what every command that runs a Job lets the user choose.
type Flags struct {
	Image          string
	PullSecret     string
	ServiceAccount string
	Wait           bool
	Timeout        time.Duration
	// Screen draws the command's progress on a terminal; nil draws a line.
	Screen Screen
}

// AddFlags adds the flags to cmd.
func (f *Flags) AddFlags(cmd *cobra.Command, streams *term.Streams) {
	flags := cmd.Flags()
	flags.StringVar(&f.Image, "image", streams.Env(ImageEnv), "image of the Job (default $"+ImageEnv+")")
	flags.StringVar(&f.PullSecret, "image-pull-secret", "", "Secret with the registry's credentials")
	flags.StringVar(&f.ServiceAccount, "service-account", "", "ServiceAccount of the Job (default inference-"+component(cmd)+")")
	flags.BoolVar(&f.Wait, "wait", true, "follow the Job until it ends; Ctrl-C leaves it running")
	flags.DurationVar(&f.Timeout, "timeout", 0, "stop following after this long; the Job goes on (default no limit)")
}

// component is the word by which the in-cluster binary and the Job's name know
// a command: sync-model is "sync".
func component(cmd *cobra.Command) string {
	name, _, _ := strings.Cut(cmd.Name(), "-")
	return name
}

// Validate refuses flags that cannot start a Job.
func (f *Flags) Validate() error {
	if f.Image == "" {
		return failure.New(failure.Usage, "give --image, or set "+ImageEnv+"; with --local no image is needed",
			"start job: this build of the plugin has no default image")
	}
	if f.Timeout < 0 {
		return failure.New(failure.Usage, "", "read --timeout: %v is negative", f.Timeout)
	}
	return nil
}

// Apply copies the flags into spec.
func (f *Flags) Apply(spec *Spec) {
	spec.Image, spec.PullSecret, spec.ServiceAccount = f.Image, f.PullSecret, f.ServiceAccount
}

// Run starts the Job of spec, or attaches to it, and follows it when --wait
// says so. The returned event is the Job's last, and nil when nobody waited; a
// Job that failed can have one too, with a result.
func (f *Flags) Run(ctx context.Context, factory *kube.Factory, streams *term.Streams, spec Spec, again bool) (*record.Event, error) {
	client, err := factory.Clientset()
	if err != nil {
		return nil, err
	}
	jobs := newJobs(client)
	started, err := jobs.Start(ctx, spec, again)
	if err != nil {
		return nil, err
	}
	verb := "started"
	switch {
	case started.Attached && f.Wait:
		verb = "already running, attached to"
	case started.Attached:
		verb = "already running:"
	}
	streams.Say("%s job/%s in namespace %s", verb, started.Job.Name, started.Job.Namespace)
	if !f.Wait {
		streams.Say("follow it with: %s", attachCommand(spec))
		return nil, nil
	}
	if f.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Timeout)
		defer cancel()
	}
	view := NewView(streams).WithScreen(f.Screen)
	event, err := jobs.Follow(ctx, started.Job, view)
	view.Close()
	return &event, leave(err, spec)
}

// leave turns the end of waiting into words: the Job is not touched.
func leave(err error, spec Spec) error {
	hint := fmt.Sprintf("follow it again: %s\nstop it: %s", attachCommand(spec), cancelCommand(spec))
	switch {
	case errors.Is(err, context.Canceled):
		return failure.New(failure.Interrupted, hint, "detached: job/%s keeps running", spec.Name())
	case errors.Is(err, context.DeadlineExceeded):
		return failure.New(failure.Timeout, hint, "stopped waiting: job/%s keeps running", spec.Name())
	}
	return err
}

func attachCommand(spec Spec) string {
	return fmt.Sprintf("kubectl inference %s attach %s -n %s", commandName(spec.Command), spec.Run, spec.Namespace)
}

func cancelCommand(spec Spec) string {
	return fmt.Sprintf("kubectl inference %s cancel %s -n %s", commandName(spec.Command), spec.Run, spec.Namespace)
}

// commandName is the inverse of component.
func commandName(component string) string {
	switch component {
	case "sync":
		return "sync-model"
	case "verify", "prune":
		return "sync-model " + component
	}
	return component
}
