package syncmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// maxShown bounds the differences on a terminal; -o json has more.
const maxShown = 50

// show prints the result of a verification.
func (o *verifyOptions) show(data json.RawMessage) error {
	var result record.ModelVerification
	if err := record.Decode(data, record.KindModelVerification, &result); err != nil {
		return failure.Wrap(err, "read the verification's result")
	}
	return o.out.Print(o.streams.Out, result, func(w io.Writer) error { return renderVerification(w, result) })
}

func renderVerification(w io.Writer, result record.ModelVerification) error {
	var text strings.Builder
	fmt.Fprintf(&text, "model      %s\nrevision   %s\nlocation   %s\n", output.Cell(result.ModelID), output.Cell(result.Revision), term.Bold(output.Cell(result.Location)))
	fmt.Fprintf(&text, "manifest   sha256:%s\n", output.Cell(result.ManifestSHA256))
	if result.RootDigest != "" {
		fmt.Fprintf(&text, "root       sha256:%s\n", output.Cell(result.RootDigest))
	}
	fmt.Fprintf(&text, "signature  %s\n", signatureText(result.Signature))
	fmt.Fprintf(&text, "listed     %d files, %s\n", result.Listed.Files, humanize.IBytes(uint64(max(0, result.Listed.Bytes))))
	what, how := "agree", "by metadata (the store's checksums)"
	if result.Mode == record.VerifyFull {
		what, how = "proved", "by reading "+humanize.IBytes(uint64(max(0, result.BytesRead)))
	}
	fmt.Fprintf(&text, "%-10s %d files, %s, %s\n", what, result.Proved.Files, humanize.IBytes(uint64(max(0, result.Proved.Bytes))), how)
	if len(result.Problems) > 0 {
		table := output.Table{Header: []string{"DIFFERS", "FILE", "EXPECTED", "FOUND"}}
		for _, problem := range result.Problems[:min(len(result.Problems), maxShown)] {
			table.Rows = append(table.Rows, []string{problem.Kind, output.Cell(problem.Path), brief(problem.Expected), brief(problem.Found)})
		}
		text.WriteString("\n")
		if err := table.Write(&text, ""); err != nil {
			return err
		}
		if more := result.ProblemCount - len(table.Rows); more > 0 {
			fmt.Fprintf(&text, "and %d more (-o json lists up to %d)\n", more, record.MaxProblems)
		}
		text.WriteString("\n")
	}
	verdict := term.Good("matches its manifest")
	if !result.Matches {
		verdict = term.Bad(fmt.Sprintf("%d differences", result.ProblemCount))
		if result.ProblemCount == 1 {
			verdict = term.Bad("1 difference")
		}
	}
	fmt.Fprintf(&text, "%s, in %.1f s\n", verdict, result.DurationSeconds)
	for _, warning := range result.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", output.Cell(warning))
	}
	_, err := io.WriteString(w, text.String())
	return err
}

var digests = regexp.MustCompile(`\b([0-9a-f]{16})[0-9a-f]{48}\b`)

// brief is a value for a table: of a digest, as much as tells two apart.
func brief(value string) string { return output.Cell(digests.ReplaceAllString(value, "$1...")) }

func signatureText(signature record.Signature) string {
	key := output.Cell(signature.KeyID)
	switch signature.State {
	case record.SignatureNone:
		return "none"
	case record.SignatureUnchecked:
		if key == "" {
			return "there is one, not checked"
		}
		return "there is one that names key " + key + ", not checked: give --key"
	case record.SignatureValid:
		return term.Good("valid") + ", by key " + key
	}
	return term.Bad("not valid")
}
