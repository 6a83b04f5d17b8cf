package explain

import (
	"slices"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// TestComplete: types without a request, names with one, nothing where it may
// not be known.
func TestComplete(t *testing.T) {
	w := newWorld(t, "complete", apiserver.Admin)
	w.addAll(t, []service{steady("fine", 0), steady("other", 0)})
	tests := map[string]struct {
		url, typed string
		want       []string
	}{
		"types":            {w.url, "", []string{"isvc/", "llmisvc/", "so/", "hpa/", "deploy/"}},
		"a type":           {w.url, "de", []string{"deploy/"}},
		"names":            {w.url, "so/", []string{"so/fine", "so/other"}},
		"a name":           {w.url, "hpa/keda-hpa-f", []string{"hpa/keda-hpa-fine"}},
		"by the long":      {w.url, "deployments/o", []string{"deployments/other"}},
		"not installed":    {w.url, "isvc/", nil},
		"unknown type":     {w.url, "x/", nil},
		"nobody answers":   {"http://127.0.0.1:1", "so/", nil},
		"types, no server": {"http://127.0.0.1:1", "so", []string{"so/"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", t.TempDir()+"/none")
			factory := kube.NewFactory("test", nil)
			cmd := New(factory, nil)
			factory.AddFlags(cmd.PersistentFlags())
			if err := cmd.ParseFlags([]string{"--server", test.url, "-n", w.namespace}); err != nil {
				t.Fatal(err)
			}
			cmd.SetContext(t.Context())
			got, _ := cmd.ValidArgsFunction(cmd, nil, test.typed)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v", got)
			}
		})
	}
}
