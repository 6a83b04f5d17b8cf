package manifests

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := New(term.New(nil, &out, &bytes.Buffer{}, nil))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// objects reads what was printed as kubectl does, and returns KIND/NAME.
func objects(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); err != nil {
			return all
		}
		all = append(all, object.GetKind()+"/"+object.GetName())
	}
}

func TestPrint(t *testing.T) {
	sync := []string{"ServiceAccount/inference-sync", "Role/inference-sync", "RoleBinding/inference-sync"}
	rbac := []string{"ServiceAccount/inference-bench", "Role/inference-bench", "RoleBinding/inference-bench",
		"ServiceAccount/inference-rollout", "Role/inference-rollout", "RoleBinding/inference-rollout", sync[0], sync[1], sync[2]}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"a folder":              {[]string{"rbac"}, rbac},
		"a folder with a slash": {[]string{"rbac/"}, rbac},
		"one file":              {[]string{"rbac/sync"}, sync},
		"with its ending":       {[]string{"rbac/sync.yaml"}, sync},
		"two":                   {[]string{"rbac/sync", "jobs/job"}, append(slices.Clone(sync), "Job/")},
		"not what begins alike": {[]string{"examples/seed"}, []string{"InferenceService/deepseek-r1-14b", "ScaledObject/deepseek-r1-14b"}},
		"JSON":                  {[]string{"examples/seed-benchreport.json"}, []string{"BenchReport/"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := run(t, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := objects(t, text); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestNames: each name that is listed can be printed.
func TestNames(t *testing.T) {
	text, err := run(t)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(text)
	if !slices.Contains(listed, "rbac/bench") {
		t.Errorf("listed are %q", listed)
	}
	for _, name := range listed {
		if text, err := run(t, name); err != nil || text == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, name := range []string{"gone", "", "/", "..", "rbac/../rbac", "rba"} {
		if _, err := run(t, name); failure.KindOf(err) != failure.NotFound {
			t.Errorf("%q: %v", name, err)
		}
	}
}
