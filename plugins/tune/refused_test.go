package tune

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

func TestInputs(t *testing.T) {
	c := start(t, "inputs")
	c.create("so", scaledObject)
	data, err := os.ReadFile(envelope(t))
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := yaml.JSONToYAML(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"JSON": data, "YAML": asYAML} {
		if got := c.tuneWith(apiserver.Admin, string(text), "so/r1", "--from", "-"); got.err != nil {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	tests := map[string]struct {
		stdin         string
		args          []string
		kind          failure.Kind
		message, hint string
	}{
		"no target":           {"", []string{"--from", "-"}, failure.Usage, "there is no target", "isvc/NAME"},
		"no evidence":         {"", []string{"so/r1"}, failure.Usage, "thresholds need evidence", "kubectl inference bench"},
		"undo with a target":  {"", []string{"so/r1", "--undo", "-"}, failure.Usage, "neither a target nor --from", ""},
		"undo with evidence":  {"", []string{"--from", "-", "--undo", "-"}, failure.Usage, "neither a target nor --from", ""},
		"no time to settle":   {"", []string{"so/r1", "--from", "-", "--settle-timeout", "0s"}, failure.Usage, "must be above 0", ""},
		"no such file":        {"", []string{"so/r1", "--from", "/nowhere/envelope.json"}, failure.Usage, "read --from: ", ""},
		"no such plan":        {"", []string{"--undo", "/nowhere/plan.json"}, failure.Usage, "read --undo: ", ""},
		"neither format":      {"{: [", []string{"so/r1", "--from", "-"}, failure.Usage, "neither JSON nor YAML", ""},
		"empty":               {"", []string{"so/r1", "--from", "-"}, failure.Usage, `of kind ""`, ""},
		"another document":    {`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"BenchReport"}`, []string{"so/r1", "--from", "-"}, failure.Usage, `of kind "BenchReport"`, ""},
		"a later version":     {`{"apiVersion":"kubectl-inference.io/v2","kind":"CapacityEnvelope"}`, []string{"so/r1", "--from", "-"}, failure.Usage, "kubectl-inference.io/v2", "release that wrote it"},
		"an envelope to undo": {string(data), []string{"--undo", "-"}, failure.Usage, `of kind "CapacityEnvelope"`, ""},
		"another shape":       {string(data), []string{"so/r1", "--from", "-", "--shape", "1/1"}, failure.Usage, `choose shape "1/1"`, "1024/128"},
		"not a target":        {string(data), []string{"so/r1/x", "--from", "-"}, failure.Usage, "not TYPE/NAME", "so/NAME"},
		"unknown target":      {string(data), []string{"so/other", "--from", "-"}, failure.NotFound, "inputs/other", "-n chooses the namespace"},
		"unknown kind":        {string(data), []string{"nonsense/other", "--from", "-"}, failure.NotFound, "nonsense", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := c.tuneWith(apiserver.Admin, test.stdin, test.args...)
			wantFailure(t, got, test.kind, test.message, test.hint)
			if got.stdout != "" || got.stderr != "" {
				t.Errorf("printed %q, %q", got.stdout, got.stderr)
			}
		})
	}
}

func TestWithoutScaler(t *testing.T) {
	c := start(t, "plain")
	c.create("hpa", hpa("web", "2", "", ""))
	wantFailure(t, c.tune(apiserver.Admin, "hpa/web", "--from", envelope(t)), failure.NotFound,
		"tune hpa/web: no ScaledObject scales it", "kubectl inference explain-scaling hpa/web")
}

func TestForbidden(t *testing.T) {
	c := start(t, "denied")
	c.create("so", scaledObject)
	c.create("hpa", hpa("keda-hpa-r1", "2", "30", "AverageValue"))
	grant := func(role string, rules ...string) {
		c.server.Kubectl(t, "", append([]string{"create", "role", role, "-n", c.namespace}, rules...)...)
		c.server.Kubectl(t, "", "create", "rolebinding", role, "-n", c.namespace, "--role="+role, "--user="+apiserver.Guest)
	}
	wantFailure(t, c.tune(apiserver.Guest, "so/r1", "--from", envelope(t)), failure.Denied, "forbidden", "kubectl auth can-i list")

	// Who may not list ScaledObjects is not told that there is none.
	grant("hpas", "--verb=get,list", "--resource=horizontalpodautoscalers.autoscaling,deployments.apps")
	wantFailure(t, c.tune(apiserver.Guest, "hpa/keda-hpa-r1", "--from", envelope(t)), failure.Denied,
		"tune hpa/keda-hpa-r1: you cannot list scaledobjects.keda.sh in denied", "kubectl auth can-i list scaledobjects.keda.sh -n denied")

	// The proposal can be read without the right to patch, not made.
	grant("scalers", "--verb=get,list", "--resource=scaledobjects.keda.sh")
	read := c.tune(apiserver.Guest, "so/r1", "--from", envelope(t))
	if read.err != nil || strings.Count(read.stderr, "\n") != 1 {
		t.Errorf("got %v, %q", read.err, read.stderr)
	}
	wantLines(t, read.stdout, "s0 queue depth", "1.23", "nothing was changed: add --apply")
	wantLines(t, read.stderr, "warning: the change was not tried on the server: patch ScaledObject denied/r1", "forbidden")
	wantFailure(t, c.tune(apiserver.Guest, "so/r1", "--from", envelope(t), "--apply"), failure.Denied,
		"patch ScaledObject denied/r1", "kubectl auth can-i patch scaledobjects.keda.sh")
	if threshold(c.get("so", "r1"), 0) != "2.0" {
		t.Error("it was changed")
	}
}
