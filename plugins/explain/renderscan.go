package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderScan writes one line a workload. width is that of the terminal, 0 for
// lines of any length.
func renderScan(w io.Writer, s record.ScalingScan, width int) error {
	s, err := cleaned(s)
	if err != nil {
		return err
	}
	table := output.Table{Header: []string{"", "TARGET", "REPLICAS", "DECISION"}}
	if s.Namespace == "" {
		table.Header = []string{"", "NAMESPACE", "TARGET", "REPLICAS", "DECISION"}
	}
	for _, item := range s.Items {
		target := item.Target
		if item.Chain.Role != "" {
			target += " " + item.Chain.Role
		}
		row := []string{markOf(item.Severity), output.Cell(target), countText(item.Chain.Replicas.Spec) + " of " + boundsText(item.Chain.Replicas), output.Cell(item.Summary)}
		if s.Namespace == "" {
			row = append([]string{row[0], output.Cell(item.Namespace)}, row[1:]...)
		}
		table.Rows = append(table.Rows, row)
	}
	if len(table.Rows) == 0 {
		table.Header = nil
		where := "in any namespace"
		if s.Namespace != "" {
			where = "in " + s.Namespace
		}
		if _, err := fmt.Fprintf(w, "Nothing scales anything %s: no HPA and no ScaledObject.\n", where); err != nil {
			return err
		}
	}
	if err := writeScan(w, table, width); err != nil {
		return err
	}
	for i, unread := range s.Unread {
		if i == 0 {
			fmt.Fprint(w, "\nNOT READ\n")
		}
		if _, err := fmt.Fprintf(w, "  %s\n", failure.Clean(unread.Message)); err != nil {
			return err
		}
	}
	return nil
}

// writeScan keeps a line a workload where the terminal lets it.
func writeScan(w io.Writer, table output.Table, width int) error {
	if len(table.Rows) > 0 && tooNarrow(table, width) {
		names := len(table.Header) - 2
		table.Header = append([]string{""}, table.Header[names:]...)
		for i, row := range table.Rows {
			table.Rows[i] = append([]string{strings.Join(row[:names], " ")}, row[names:]...)
		}
		return writeStacked(w, table, "", width)
	}
	fitLast(&table, width)
	return table.Write(w, "")
}

func markOf(severity string) string {
	switch severity {
	case record.SeverityError:
		return term.Bad(severity)
	case record.SeverityWarning:
		return term.Caution(severity)
	case record.SeverityInfo:
		return term.Faint(severity)
	}
	return term.Good("ok")
}
