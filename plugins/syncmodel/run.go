package syncmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/runner"
	"github.com/kubectl-inference/kubectl-inference/plugins/jobrun"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

func (o *options) run(ctx context.Context) error {
	if o.local {
		return o.runLocal(ctx)
	}
	namespace, err := o.factory.Namespace()
	if err != nil {
		return err
	}
	spec := o.spec(namespace)
	event, err := o.job.Run(ctx, o.factory, o.streams, spec, true)
	if err != nil || event == nil {
		return err
	}
	return o.show(event.Result)
}

// spec says what the Job is.
func (o *options) spec(namespace string) jobrun.Spec {
	spec := jobrun.Spec{
		Command: "sync", Run: runName(o.plan), Namespace: namespace, Plan: o.plan, SecretEnv: o.store.SecretEnv(),
		Retries: o.retries, Workers: int32(o.plan.Workers), Memory: o.plan.MemoryBytes + overhead, Deadline: o.deadline, MetricsPort: o.metrics,
		CallsAPI: !o.plan.DryRun,
	}
	if o.plan.DryRun {
		// One pod sees all there is to see.
		spec.Workers, spec.MetricsPort = 1, 0
	} else if o.push != "" {
		spec.Env = map[string]string{runner.PushEnv: o.push}
	}
	if o.hubSecret != "" {
		spec.SecretEnv = append(spec.SecretEnv, jobrun.SecretEnv{Name: keyToken, Secret: o.hubSecret, Key: keyToken})
	}
	if o.signSecret != "" {
		spec.SecretEnv = append(spec.SecretEnv, jobrun.SecretEnv{Name: runner.SignKeyEnv, Secret: o.signSecret, Key: keySigning})
	}
	o.job.Apply(&spec)
	o.network.Apply(&spec)
	o.place.Apply(&spec)
	return spec
}

func (o *options) runLocal(ctx context.Context) error {
	plan, err := json.Marshal(o.plan)
	if err != nil {
		return err
	}
	view := jobrun.NewView(o.streams)
	result, err := runner.LocalSync(ctx, o.environment, o.version, plan, view.Event)
	view.Close()
	if err != nil {
		left := "what was transferred stays in the bucket: the same command goes on from there, and the manifest is written when all is"
		if o.plan.DryRun {
			left = "nothing was written"
		}
		return interrupted(ctx, err, left, "sync-model %s", o.plan.Repo)
	}
	return o.show(result)
}

// environment is this process's, with the certificates of --ca-bundle.
func (o *options) environment(name string) string {
	if name == jobrun.CAEnv && o.network.PEM() != "" {
		return o.network.PEM()
	}
	if name == runner.SignKeyEnv && o.signKey != "" {
		return o.signKey
	}
	return o.streams.Env(name)
}

// show prints the result of a sync.
func (o *options) show(data json.RawMessage) error {
	if len(data) == 0 {
		return failure.New(failure.NotFound, "run it again: what is there is not sent again",
			"show the sync's result: it is complete, but its log is gone and its result was too large to keep")
	}
	var result record.SyncResult
	if err := record.Decode(data, record.KindSyncResult, &result); err != nil {
		return failure.Wrap(err, "read the sync's result")
	}
	return o.out.Print(o.streams.Out, result, func(w io.Writer) error { return render(w, result) })
}

func render(w io.Writer, result record.SyncResult) error {
	var text strings.Builder
	size := func(count record.FileCount) string {
		return fmt.Sprintf("%d files, %s", count.Files, humanize.IBytes(uint64(count.Bytes)))
	}
	revision := result.Revision
	if result.RequestedRevision != result.Revision {
		revision += " (" + output.Cell(result.RequestedRevision) + ")"
	}
	fmt.Fprintf(&text, "model      %s\nrevision   %s\nlocation   %s\n", output.Cell(result.Repo), revision, term.Bold(output.Cell(result.Location)))
	uploaded := "uploaded"
	if result.DryRun {
		uploaded = "to upload"
	}
	fmt.Fprintf(&text, "planned    %s\n%-10s %s\npresent    %s\n", size(result.Total), uploaded, size(result.Uploaded), size(result.Present))
	if result.Removed.Files > 0 {
		removed := "removed"
		if result.DryRun {
			removed = "to remove"
		}
		fmt.Fprintf(&text, "%-10s %s\n", removed, size(result.Removed))
	}
	if result.Skipped.Files > 0 {
		fmt.Fprintf(&text, "left out   %s\n", size(result.Skipped))
	}
	if result.DryRun {
		table := output.Table{Header: []string{"ACTION", "SIZE", "FILE", "WHY"}, Right: []int{1}}
		for _, file := range result.Files {
			table.Rows = append(table.Rows, []string{file.Action, humanize.IBytes(uint64(file.Size)), output.Cell(file.Path), output.Cell(file.Reason)})
		}
		text.WriteString("\n")
		if err := table.Write(&text, ""); err != nil {
			return err
		}
		text.WriteString("\nnothing was written (dry run)\n")
	} else {
		fmt.Fprintf(&text, "manifest   sha256:%s\nroot       sha256:%s\n", result.ManifestSHA256, result.RootDigest)
		if result.SignedBy != "" {
			fmt.Fprintf(&text, "signed by  %s\n", output.Cell(result.SignedBy))
		}
		state := "complete"
		if result.AlreadyComplete {
			state = "complete already"
		}
		fmt.Fprintf(&text, "%s in %.1f s\n", term.Good(state), result.DurationSeconds)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", output.Cell(warning))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
