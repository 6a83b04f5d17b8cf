package syncmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// show prints the result of a prune.
func (o *pruneOptions) show(data json.RawMessage) error {
	var result record.PruneResult
	if err := record.Decode(data, record.KindPruneResult, &result); err != nil {
		return failure.Wrap(err, "read the prune's result")
	}
	return o.out.Print(o.streams.Out, result, func(w io.Writer) error { return renderPrune(w, result) })
}

func renderPrune(w io.Writer, result record.PruneResult) error {
	var text strings.Builder
	if len(result.Revisions) == 0 {
		fmt.Fprintf(&text, "no revision below %s\n", output.Cell(result.Location))
	} else {
		table := output.Table{Header: []string{"ACTION", "SIZE", "STATE", "REVISION", "WHY"}, Right: []int{1}}
		for _, revision := range result.Revisions {
			place := strings.TrimPrefix(strings.TrimPrefix(revision.Location, result.Location), "/")
			table.Rows = append(table.Rows, []string{revision.Action, humanize.IBytes(uint64(max(0, revision.Content.Bytes))), revision.State, output.Cell(place), output.Cell(revision.Reason)})
		}
		if err := table.Write(&text, ""); err != nil {
			return err
		}
	}
	size := fmt.Sprintf("%d objects, %s", result.Deleted.Files, humanize.IBytes(uint64(max(0, result.Deleted.Bytes))))
	switch {
	case result.Applied:
		fmt.Fprintf(&text, "\n%s %s\n", term.Good("deleted"), size)
	case result.Deleted.Files > 0:
		fmt.Fprintf(&text, "\nnothing was deleted (dry run); --apply deletes %s\n", size)
	default:
		text.WriteString("\nnothing to delete\n")
	}
	if result.Other.Files > 0 {
		fmt.Fprintf(&text, "left alone %d objects, %s, that belong to no revision\n", result.Other.Files, humanize.IBytes(uint64(max(0, result.Other.Bytes))))
	}
	for _, warning := range result.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", output.Cell(warning))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
