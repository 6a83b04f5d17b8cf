package output_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

type thing struct {
	record.TypeMeta `json:",inline"`
	Zulu            string   `json:"zulu"`
	Alpha           *float64 `json:"alpha_seconds"`
	List            []string `json:"list"`
}

func TestPrint(t *testing.T) {
	document := thing{TypeMeta: record.Meta("Thing"), Zulu: "a<b", List: []string{}}
	for name, test := range map[string]struct{ format, want string }{
		"human":       {"", "for people\n"},
		"json":        {"json", "{\n  \"apiVersion\": \"kubectl-inference.io/v1alpha1\",\n  \"kind\": \"Thing\",\n  \"zulu\": \"a<b\",\n  \"alpha_seconds\": null,\n  \"list\": []\n}\n"},
		"yaml":        {"yaml", "alpha_seconds: null\napiVersion: kubectl-inference.io/v1alpha1\nkind: Thing\nlist: []\nzulu: a<b\n"},
		"jsonpath":    {"jsonpath={.zulu}", "a<b"},
		"go template": {"go-template={{.kind}}", "Thing"},
	} {
		t.Run(name, func(t *testing.T) {
			flags := output.Flags{Format: test.format}
			if err := flags.Validate(); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			err := flags.Print(&got, document, func(w io.Writer) error {
				_, err := io.WriteString(w, "for people\n")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateRefusesUnknownFormats(t *testing.T) {
	for _, format := range []string{"wide", "jsonpath", "JSON", "json=x"} {
		flags := output.Flags{Format: format}
		if got := failure.KindOf(flags.Validate()); got != failure.Usage {
			t.Errorf("-o %s: kind %d, want usage", format, got)
		}
	}
}

type rows struct{ err error }

func (r rows) WriteCSV(w io.Writer) error {
	_, err := io.WriteString(w, "a,b\n")
	return errors.Join(err, r.err)
}

func TestCSV(t *testing.T) {
	flags := output.Flags{Format: "csv", Rows: true}
	var got strings.Builder
	if err := flags.Print(&got, rows{}, nil); flags.Validate() != nil || err != nil || got.String() != "a,b\n" {
		t.Errorf("%v: %q", err, got.String())
	}
	if err := flags.Print(io.Discard, rows{io.ErrShortWrite}, nil); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a write error was lost: %v", err)
	}
	if err := flags.Print(io.Discard, thing{}, nil); failure.KindOf(err) != failure.Usage {
		t.Errorf("a document without rows: %v", err)
	}
	if err := (&output.Flags{Format: "csv"}).Validate(); failure.KindOf(err) != failure.Usage {
		t.Errorf("csv where nothing has rows: %v", err)
	}
}

func TestTableAlignsWhatIsSeen(t *testing.T) {
	table := output.Table{
		Header: []string{"NAME", "VALUE", "WHY"},
		Rows: [][]string{
			{"queue", "2.00", term.Bold("wins")},
			{term.Bold("größe"), "10.00", ""},
		},
		Right: []int{1},
	}
	var got strings.Builder
	streams := term.New(nil, &got, io.Discard, nil)
	if err := table.Write(streams.Out, "  "); err != nil {
		t.Fatal(err)
	}
	want := "  NAME    VALUE   WHY\n  queue    2.00   wins\n  größe   10.00\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}
