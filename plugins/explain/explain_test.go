package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/golden"
)

// run runs the command as a user would, without a cluster.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errs bytes.Buffer
	streams := term.New(strings.NewReader(stdin), &out, &errs, nil)
	cmd := New(kube.NewFactory("test", nil), streams)
	// Without arguments cobra would take those of the test binary.
	cmd.SetArgs(append([]string{}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// runWithKubeFlags is run with -n and the other flags of kubectl.
func runWithKubeFlags(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errs bytes.Buffer
	factory := kube.NewFactory("test", nil)
	cmd := New(factory, term.New(strings.NewReader(stdin), &out, &errs, nil))
	factory.AddFlags(cmd.PersistentFlags())
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"waiting", "disagrees", "one-broken", "paused", "cpu", "zero"} {
		t.Run(name, func(t *testing.T) {
			input := filepath.Join("testdata", name+".yaml")
			stdout, stderr, err := run(t, "", "-f", input)
			if err != nil || stderr != "" {
				t.Fatalf("%v %s", err, stderr)
			}
			golden.Compare(t, name+".golden", stdout)
		})
	}
}

// TestDocument: the document of -o json carries what the table says.
func TestDocument(t *testing.T) {
	stdout, _, err := run(t, "", "-f", "testdata/waiting.yaml", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var document record.ScalingExplanation
	if err := record.Decode([]byte(stdout), record.KindScalingExplanation, &document); err != nil {
		t.Fatal(err)
	}
	again, err := record.Encode(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stdout, string(again)); diff != "" {
		t.Errorf("round trip: %s", diff)
	}
	chain := document.Chains[0]
	if len(chain.Links) != 4 || chain.Links[0].Kind != "InferenceService" || document.KEDAVersion != "2.21.0" {
		t.Errorf("got %+v", chain.Links)
	}
	if got := chain.Triggers[1].AddsAt; got == nil || *got != 0.826 {
		t.Errorf("adds at: got %v", got)
	}
	if !chain.Triggers[2].Winner || chain.Decision.From != 1 || chain.Decision.Raw.Low != 2 || !chain.Check.Agrees {
		t.Errorf("got %+v %+v", chain.Triggers[2], chain.Decision)
	}
	for _, list := range []string{"chains", "unread_inputs", "links", "triggers", "warnings", "disagreements", "hidden_inputs"} {
		if strings.Contains(stdout, `"`+list+`": null`) {
			t.Errorf("%s is null, not []", list)
		}
	}
}

func TestReading(t *testing.T) {
	yaml, err := os.ReadFile("testdata/waiting.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/waiting.golden")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		stdin string
		args  []string
	}{
		"standard input": {string(yaml), []string{"-f", "-"}},
		"by service":     {string(yaml), []string{"isvc/chat", "-f", "-"}},
		"by bare name":   {string(yaml), []string{"chat", "-f", "-"}},
		"by two words":   {string(yaml), []string{"hpa", "keda-hpa-chat", "-f", "-"}},
		"with comments":  {"# nothing\n---\n" + string(yaml) + "\n---\n", []string{"-f", "-"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, test.stdin, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), stdout); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		stdin string
		args  []string
		kind  failure.Kind
		text  string
	}{
		"target and -A":      {"", []string{"isvc/x", "-A"}, failure.Usage, "not both"},
		"files and -A":       {"", []string{"-f", "-", "-A"}, failure.Usage, "-A is for a cluster"},
		"watch in a scan":    {"", []string{"--watch"}, failure.Usage, "--watch is for one TARGET"},
		"watch of files":     {"", []string{"--watch", "-f", "-"}, failure.Usage, "--watch is for one TARGET"},
		"set in a scan":      {"", []string{"--set", "max=3"}, failure.Usage, "for one TARGET"},
		"no target":          {"", []string{"a/b/c"}, failure.Usage, "not TYPE/NAME"},
		"no file":            {"", []string{"-f", "testdata/none.yaml"}, failure.Usage, "no such file"},
		"no yaml":            {"{{{", []string{"-f", "-"}, failure.Usage, "document 1"},
		"no object":          {"a: 1\n", []string{"-f", "-"}, failure.Usage, "no Kubernetes object"},
		"empty":              {"", []string{"-f", "-"}, failure.Usage, "no HPA"},
		"not among them":     {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", []string{"so/x", "-f", "-"}, failure.NotFound, "no chain"},
		"wrong type":         {"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: x}\nspec: {triggers: 7}\n", []string{"-f", "-"}, failure.Usage, "read scaledobject"},
		"unknown format":     {"", []string{"-f", "-", "-o", "xml"}, failure.Usage, "not known"},
		"no version":         {"", []string{"-f", "-", "--kubernetes-version", "new"}, failure.Usage, "is no version"},
		"version of cluster": {"", []string{"isvc/x", "--kubernetes-version", "1.35"}, failure.Usage, "for saved objects"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := run(t, test.stdin, test.args...)
			if err == nil || failure.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.text) || stdout != "" {
				t.Errorf("got kind %d: %v", failure.KindOf(err), err)
			}
		})
	}
}

// TestVersions: the same status means another proposal to an older controller.
func TestVersions(t *testing.T) {
	yaml, err := os.ReadFile("testdata/waiting.yaml")
	if err != nil {
		t.Fatal(err)
	}
	edge := strings.ReplaceAll(string(yaml), "780m", "825m")
	for version, want := range map[string]int32{"1.37": 1, "1.32": 2} {
		stdout, _, err := run(t, edge, "-f", "-", "-o", "json", "--kubernetes-version", version)
		if err != nil {
			t.Fatal(err)
		}
		var document record.ScalingExplanation
		if err := json.Unmarshal([]byte(stdout), &document); err != nil {
			t.Fatal(err)
		}
		if got := document.Chains[0].Triggers[1].Proposes; got == nil || got.Low != want {
			t.Errorf("%s: got %+v, want %d", version, got, want)
		}
	}
}
