package explain

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// TestRules: every id that the rules use is documented, once, with what a
// program matches on.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("lint*.go")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for _, name := range files {
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "id") {
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
					ids[strings.Trim(literal.Value, `"`)] = 0
				}
			}
			return true
		})
	}
	if len(ids) < 20 {
		t.Fatalf("found %d ids", len(ids))
	}
	stdout, _, err := run(t, "", "--list-rules", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var document record.ScalingRules
	if err := record.Decode([]byte(stdout), record.KindScalingRules, &document); err != nil {
		t.Fatal(err)
	}
	for _, rule := range document.Rules {
		ids[rule.ID]++
		if rule.Meaning == "" || len(rule.Severities) == 0 || ids[rule.ID] > 1 {
			t.Errorf("got %+v", rule)
		}
	}
	for id, count := range ids {
		if count == 0 {
			t.Errorf("%s is not documented", id)
		}
	}
	text, _, err := run(t, "", "--list-rules")
	if err != nil || !strings.Contains(text, "two-hpas-one-target") {
		t.Errorf("got %v %s", err, text)
	}
}
