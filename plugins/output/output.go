// Package output prints a command's document: as the table or chart that the
// command renders for people, or as data in the formats that kubectl users
// know. Data never depends on the terminal.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Flags is the value of -o. The zero value prints for people.
type Flags struct {
	Format string
	// Rows says that the command's document has rows, so that csv is a format
	// too; set it before AddFlags.
	Rows bool
}

// Rower is a document with rows.
type Rower interface{ WriteCSV(io.Writer) error }

const formatCSV = "csv"

// plain are the formats written without cli-runtime's printers, which would
// sort the fields of a document by name.
var plain = []string{"json", "yaml"}

// templated are cli-runtime's formats that take a template after "=".
var templated = []string{"jsonpath", "jsonpath-as-json", "go-template"}

// AddFlags adds -o/--output and its completion to cmd.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	usage := "print the result as data: json, yaml, jsonpath=..., go-template=..."
	formats := []string{"json\tthe whole document", "yaml\tthe whole document", "jsonpath=\tsome fields", "go-template=\tsome fields"}
	if f.Rows {
		usage += ", csv"
		formats = append(formats, formatCSV+"\ta row for each case")
	}
	cmd.Flags().StringVarP(&f.Format, "output", "o", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// Human says whether the output is for people.
func (f *Flags) Human() bool { return f.Format == "" }

// Validate refuses a format that does not exist.
func (f *Flags) Validate() error {
	name, _, hasTemplate := strings.Cut(f.Format, "=")
	switch {
	case f.Format == "", slices.Contains(plain, f.Format):
		return nil
	case f.Rows && f.Format == formatCSV:
		return nil
	case slices.Contains(templated, name) && hasTemplate:
		return nil
	}
	return failure.New(failure.Usage, "use -o json, -o yaml, -o jsonpath='{.field}' or -o go-template='{{.field}}'",
		"read --output: format %q is not known", f.Format)
}

// Print writes document to w in the chosen format, or calls human for people.
func (f *Flags) Print(w io.Writer, document any, human func(io.Writer) error) error {
	switch {
	case f.Human():
		return human(w)
	case f.Format == "json":
		data, err := record.Encode(document)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case f.Format == "yaml":
		data, err := yaml.Marshal(document)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case f.Format == formatCSV:
		rows, ok := document.(Rower)
		if !ok {
			return failure.New(failure.Usage, "use -o json", "print document: it has no rows to write as csv")
		}
		return rows.WriteCSV(w)
	}
	return f.printTemplate(w, document)
}

func (f *Flags) printTemplate(w io.Writer, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(data, &object.Object); err != nil {
		return fmt.Errorf("print document: %w", err)
	}
	format := f.Format
	flags := genericclioptions.NewPrintFlags("")
	flags.OutputFormat = &format
	printer, err := flags.ToPrinter()
	if err != nil {
		return failure.New(failure.Usage, "", "read --output: %w", err)
	}
	return printer.PrintObj(&object, w)
}
