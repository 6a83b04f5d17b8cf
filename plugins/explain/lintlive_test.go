package explain

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// TestLintLive: rules that need what a controller wrote, on saved objects and
// on the same with one difference.
func TestLintLive(t *testing.T) {
	change := func(file string, pairs ...string) string {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				t.Fatalf("%s has no %q", file, pairs[i])
			}
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		return text
	}
	const waiting, hpas = "testdata/waiting.yaml", "testdata/lab/two-hpas.yaml"
	const target = "      kind: Deployment\n      name: "
	const prefix = `sum(vllm:num_requests_waiting{pod=~"chat-predictor-.*"})`
	sibling := func(name, namespace string) string {
		return manifest(atLeast1, trigger(prefix, "2", "")) + fmt.Sprintf("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: %s}\nspec: {replicas: 1, selector: {matchLabels: {app: x}}}\n", name, namespace)
	}
	tests := map[string]struct {
		severity, fires, quiet, says string
	}{
		idNotReady:        {"error", change("testdata/one-broken.yaml"), change(waiting), "KEDA reports Ready=Unknown"},
		idWithinTolerance: {"info", change(waiting), change(waiting, "780m", "740m", `averageValue: "2"}}}`+"\n  - {type: External, external: {metric: {name: s1-prometheus}, current", `averageValue: "1"}}}`+"\n  - {type: External, external: {metric: {name: s1-prometheus}, current"), "acts above"},
		idStale:           {"info", change(waiting, "  namespace: models\n  creationTimestamp", "  generation: 3\n  namespace: models\n  creationTimestamp", "status:\n  currentReplicas", "status:\n  observedGeneration: 2\n  currentReplicas"), change(waiting, "  namespace: models\n  creationTimestamp", "  generation: 2\n  namespace: models\n  creationTimestamp", "status:\n  currentReplicas", "status:\n  observedGeneration: 2\n  currentReplicas"), "edited after"},
		// The HPA's condition says no more than that there was an error.
		idFailed: {"error", change("testdata/lab/one-broken.yaml"), change(waiting), "s1 kv cache failed: prometheus query api returned error. status: 400"},
		// Both HPAs of the lab's Deployment stop.
		idRivals:                        {"error", change(hpas), change(hpas, target+"composite", target+"first", target+"composite", target+"other", target+"first", target+"composite"), "HPA rival scales the same workload"},
		idPodPattern + " of a sibling":  {"warning", sibling("chat-predictor-canary", "models"), sibling("chat-predictor-canary", "other"), "matches the pods of chat-predictor-canary too"},
		idPodPattern + " of a stranger": {"info", sibling("chat-prefill", "models"), manifest(atLeast1, trigger(queue, "2", "")), "would be counted here"},
	}
	defer documented(t, slices.Collect(maps.Keys(tests)), true)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			id, _, _ := strings.Cut(name, " ")
			fired := allFindingsIn(t, test.fires)
			if !slices.ContainsFunc(fired, func(f record.Finding) bool {
				return f.ID == id && f.Severity == test.severity && strings.Contains(f.Message, test.says) && f.Fix != ""
			}) {
				t.Errorf("silent: %+v", fired)
			}
			for _, f := range allFindingsIn(t, test.quiet) {
				if f.ID == id && f.Severity == test.severity {
					t.Errorf("fires: %+v", f)
				}
			}
		})
	}
}

func allFindingsIn(t *testing.T, yaml string) []record.Finding {
	t.Helper()
	stdout, _, err := run(t, yaml, "-f", "-", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var document record.ScalingExplanation
	if err := json.Unmarshal([]byte(stdout), &document); err != nil {
		t.Fatal(err)
	}
	var all []record.Finding
	for _, c := range document.Chains {
		all = append(all, c.Warnings...)
	}
	return all
}
