// Package arch holds the import rules of the house as a test.
package arch

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kubectl-inference/kubectl-inference"

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// list returns the packages that the patterns name, with their dependencies.
func list(t *testing.T, patterns ...string) []goPackage {
	t.Helper()
	output, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Deps"}, patterns...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			if errors.Is(err, io.EOF) {
				return packages
			}
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// room returns the first folders of a package of ours, such as "plugins/explain".
func room(path string) string {
	rest, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return ""
	}
	parts := strings.SplitN(rest, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// shared are the rooms under plugins that every command may use.
var shared = []string{"plugins/core", "plugins/kube", "plugins/jobrun", "plugins/prom", "plugins/output", "plugins/term"}

func TestArrows(t *testing.T) {
	for _, p := range list(t, module+"/plugins/...", module+"/jobs/...", module+"/cmd/...") {
		from := room(p.ImportPath)
		for _, imported := range p.Imports {
			to := room(imported)
			if to == "" || to == from {
				continue
			}
			if problem := crosses(from, to); problem != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, problem)
			}
		}
	}
}

// crosses says which rule an import from one room to another breaks, "" for none.
func crosses(from, to string) string {
	house := func(room string) string { name, _, _ := strings.Cut(room, "/"); return name }
	command := house(from) == "plugins" && !slices.Contains(shared, from) && from != "plugins/root"
	switch {
	case house(to) == "test", house(to) == "cmd":
		return "the product does not import tests or programs"
	case house(from) == "jobs" && house(to) == "plugins":
		return "what runs in the cluster knows nothing of the plugin"
	case from == "jobs/core":
		return "core imports only core"
	case from == "plugins/core" && to != "jobs/core":
		return "core imports only core"
	case command && house(to) == "plugins" && !slices.Contains(shared, to):
		return "a command does not import another command"
	case slices.Contains(shared, from) && house(to) == "plugins" && !slices.Contains(shared, to):
		return "a shared room does not import a command"
	case (from == "plugins/term" || from == "plugins/output") && (to == "plugins/kube" || to == "plugins/jobrun"):
		return "the terminal knows nothing of the cluster"
	}
	return ""
}

func TestCrossesFindsViolations(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		allowed  bool
	}{
		"job to plugin":        {"jobs/sync", "plugins/kube", false},
		"command to command":   {"plugins/tune", "plugins/explain", false},
		"command to kube":      {"plugins/tune", "plugins/kube", true},
		"root to command":      {"plugins/root", "plugins/tune", true},
		"plugin to job":        {"plugins/bench", "jobs/runner", true},
		"core to kube":         {"plugins/core", "plugins/kube", false},
		"core to shared core":  {"plugins/core", "jobs/core", true},
		"jobs core to job":     {"jobs/core", "jobs/hub", false},
		"kube to command":      {"plugins/kube", "plugins/explain", false},
		"output to kube":       {"plugins/output", "plugins/kube", false},
		"product to the fakes": {"jobs/bench", "test/fakes", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := crosses(test.from, test.to) == ""; got != test.allowed {
				t.Errorf("%s -> %s allowed = %t, want %t", test.from, test.to, got, test.allowed)
			}
		})
	}
}

// TestCoreIsPure: a core package depends on other core packages, value types
// and the pure part of the standard library.
func TestCoreIsPure(t *testing.T) {
	forbidden := []string{"net", "net/http", "os", "os/exec", "os/signal", "syscall", "embed", "log", "log/slog"}
	for _, p := range list(t, module+"/plugins/core/...", module+"/jobs/core/...") {
		for _, imported := range p.Imports {
			first, _, _ := strings.Cut(imported, "/")
			switch {
			case slices.Contains(forbidden, imported):
				t.Errorf("%s imports %s: core has no network, files, environment or processes", p.ImportPath, imported)
			case !strings.Contains(first, "."):
			case strings.HasPrefix(imported, module+"/plugins/core/"), strings.HasPrefix(imported, module+"/jobs/core/"):
			case strings.HasPrefix(imported, "k8s.io/api/"), strings.HasPrefix(imported, "k8s.io/apimachinery/pkg/"):
			case strings.HasPrefix(imported, "gonum.org/v1/gonum/"), imported == "github.com/expr-lang/expr":
			default:
				t.Errorf("%s imports %s: core knows values only", p.ImportPath, imported)
			}
		}
	}
}

// TestProductIsLight keeps the servers that the lab builds out of the product.
func TestProductIsLight(t *testing.T) {
	for _, p := range list(t, module+"/cmd/...") {
		for _, dependency := range p.Deps {
			if strings.HasPrefix(dependency, "k8s.io/kubernetes") || strings.HasPrefix(dependency, "github.com/kedacore/") || strings.HasPrefix(dependency, "github.com/kserve/") {
				t.Errorf("%s depends on %s", p.ImportPath, dependency)
			}
			if strings.HasPrefix(dependency, module+"/test/") {
				t.Errorf("%s depends on %s: tests are no part of the product", p.ImportPath, dependency)
			}
		}
	}
}

// TestThePluginHasNoServerParts keeps what only runs in the cluster, such as
// compiled-in certificate authorities, out of the plugin.
func TestThePluginHasNoServerParts(t *testing.T) {
	for _, p := range list(t, module+"/cmd/kubectl-inference") {
		for _, dependency := range p.Deps {
			if strings.HasPrefix(dependency, "golang.org/x/crypto/x509roots") {
				t.Errorf("%s depends on %s", p.ImportPath, dependency)
			}
		}
	}
}
