package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// serve answers the lists of one namespace with saved objects; a list of a kind
// in forbidden is refused.
func serve(t *testing.T, file, forbidden string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string][]json.RawMessage{}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		object, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		var meta struct{ Kind string }
		if err := json.Unmarshal(object, &meta); err != nil {
			t.Fatal(err)
		}
		resource := strings.ToLower(meta.Kind) + "s"
		items[resource] = append(items[resource], object)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		resource := filepath.Base(r.URL.Path)
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"major":"1","minor":"37"}`)
		case resource == forbidden:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
		default:
			list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": append([]json.RawMessage{}, items[resource]...)})
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(list)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func runCluster(t *testing.T, url string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errs bytes.Buffer
	factory := kube.NewFactory("test", nil)
	cmd := command(&options{factory: factory, streams: term.New(strings.NewReader(""), &out, &errs, nil), now: later})
	factory.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--server", url, "--cache-dir", t.TempDir(), "-n", "models"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestCluster(t *testing.T) {
	tests := map[string]struct {
		forbidden string
		stderr    string
		lines     []string
	}{
		"all readable": {"", "", []string{
			"InferenceService chat > ScaledObject chat > HPA keda-hpa-chat > Deployment chat-predictor",
			"DECISION 1 -> 2, waiting",
			"agrees with the controller: desiredReplicas 1, ScaleUpStabilized",
		}},
		"events refused": {"events", "", []string{"DECISION 1 -> 2, waiting", "NOT READ", "  cannot list events in models"}},
		"lease refused":  {"kube-controller-manager", "", []string{"DECISION 1 -> 2, waiting", "NOT READ", "  cannot get leases.coordination.k8s.io in kube-system"}},
		"ScaledObjects refused": {"scaledobjects", "", []string{
			"s2-prometheus", "  cannot list scaledobjects.keda.sh in models", "DECISION 1 -> 2, waiting",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := runCluster(t, serve(t, "testdata/waiting.yaml", test.forbidden), "isvc/chat")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range test.lines {
				if !strings.Contains(stdout, line) {
					t.Errorf("%q is missing in\n%s", line, stdout)
				}
			}
			if !strings.HasPrefix(stderr, test.stderr) || strings.Count(stderr, "\n") > 1 || (test.stderr == "" && stderr != "") {
				t.Errorf("stderr: %q", stderr)
			}
		})
	}
}

func TestClusterUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, _, err := runCluster(t, server.URL, "isvc/chat")
	if failure.KindOf(err) != failure.Unreachable || failure.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
}

// later is a clock for objects that a test has just made: nothing has changed
// since the last sync.
func later() time.Time { return time.Now().Add(time.Minute) }
