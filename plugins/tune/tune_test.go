package tune

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// scaledObject has a queue and a latency trigger, as the seed has them.
const scaledObject = `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: r1, annotations: {}}
spec:
  scaleTargetRef: {name: r1-predictor}
  triggers:
  - type: prometheus
    metadata: {serverAddress: "http://prometheus:9090", threshold: "2.0", query: 'sum(vllm:num_requests_waiting{pod=~"r1-.*"})'}
  - type: prometheus
    metadata: {serverAddress: "http://prometheus:9090", threshold: "30", query: 'histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket{pod=~"r1-.*"}[5m])))'}
`

// hpa is what KEDA makes of a ScaledObject: the thresholds in thousandths.
func hpa(name, waiting, latency, latencyType string) string {
	field := map[string]string{"Value": "value", "AverageValue": "averageValue"}[latencyType]
	text := `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: ` + name + `}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: r1-predictor}
  maxReplicas: 6
  metrics:
  - type: External
    external: {metric: {name: s0-prometheus}, target: {type: AverageValue, averageValue: "` + waiting + `"}}
`
	if latency != "" {
		text += `  - type: External
    external: {metric: {name: s1-prometheus}, target: {type: ` + latencyType + `, ` + field + `: "` + latency + `"}}
`
	}
	return text
}

// envelope writes an envelope that advises 1.234 waiting, and 12.04 seconds.
func envelope(t *testing.T) string {
	t.Helper()
	waiting, latency := 1.234, 12.04
	data, err := record.Encode(record.CapacityEnvelope{
		TypeMeta: record.Meta(record.KindCapacityEnvelope), Model: "org/model", Tolerance: 0.1,
		Runs: []record.EnvelopeRun{{Run: "run-1"}},
		Shapes: []record.ShapeEnvelope{{PromptTokens: 1024, OutputTokens: 128, Thresholds: []record.Threshold{
			{Trigger: record.TriggerWaiting, MetricType: record.MetricTypeAverageValue, Threshold: &waiting, How: "between 20 and 40"},
			{Trigger: record.TriggerP99E2E, MetricType: record.MetricTypeValue, Threshold: &latency, How: "at the planned load"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "envelope.json", data)
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func wantFailure(t *testing.T, got result, kind failure.Kind, message, hint string) {
	t.Helper()
	if got.err == nil || failure.KindOf(got.err) != kind || !strings.Contains(got.err.Error(), message) || !strings.Contains(failure.HintOf(got.err), hint) {
		t.Errorf("got %v (%d, hint %q), want %q (%d, hint %q)", got.err, failure.KindOf(got.err), failure.HintOf(got.err), message, kind, hint)
	}
	if got.err != nil && strings.Contains(got.err.Error(), "\n") {
		t.Errorf("more than one line: %q", got.err)
	}
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

// playKEDA writes the HPA anew once the ScaledObject has the threshold, as
// KEDA does, and reports how that went.
func (c *cluster) playKEDA(want, patch string) (wait func()) {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	go func() { done <- c.when(ctx, want, func() error { return c.patch(ctx, "hpa", "keda-hpa-r1", patch) }) }()
	var once sync.Once
	wait = func() {
		once.Do(func() {
			defer cancel()
			if err := <-done; err != nil {
				c.t.Error(err)
			}
		})
	}
	c.t.Cleanup(wait)
	return wait
}

func TestDryRunChangesNothing(t *testing.T) {
	c := start(t, "dry")
	before := c.create("so", scaledObject)
	got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t))
	if got.err != nil {
		t.Fatal(got.err)
	}
	wantLines(t, got.stdout,
		"ScaledObject r1, measured at 1024/128 with org/model (run run-1)",
		"between 20 and 40", "metricType AverageValue becomes Value",
		`-      threshold: "2.0"`, `+      threshold: "1.23"`, `-      threshold: "30"`, `+      threshold: "12"`, "+    metricType: Value",
		"nothing was changed: add --apply")
	if diff := cmp.Diff(before.Object, c.get("so", "r1").Object); diff != "" {
		t.Error(diff)
	}
}

// The whole way: change, KEDA follows, take it back, KEDA follows.
func TestApplyAndUndo(t *testing.T) {
	c := start(t, "apply")
	before := c.create("so", scaledObject)
	c.create("hpa", hpa("keda-hpa-r1", "2", "30", "AverageValue"))
	const metric = "/spec/metrics/"
	follow := c.playKEDA("1.23", `[{"op":"replace","path":"`+metric+`0/external/target/averageValue","value":"1230m"},
		{"op":"replace","path":"`+metric+`1/external/target","value":{"type":"Value","value":"12"}}]`)
	got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply", "-o", "yaml", "--settle-timeout", "30s")
	follow()
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.stderr != "settled: the ScaledObject and the HPA have the change\n" {
		t.Errorf("stderr: %q", got.stderr)
	}
	changed := c.get("so", "r1")
	if threshold(changed, 0) != "1.23" || threshold(changed, 1) != "12" {
		t.Errorf("got %v", changed.Object["spec"])
	}
	if !slices.ContainsFunc(changed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == kube.FieldManager }) {
		t.Errorf("changed by %v", changed.GetManagedFields())
	}

	// The second time there is nothing to do.
	again := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply")
	wantLines(t, again.stdout, "it has the advised threshold already", "nothing to change")
	if again.err != nil || again.stderr != "" {
		t.Errorf("got %v, %q", again.err, again.stderr)
	}

	plan := write(t, "plan.yaml", []byte(got.stdout))
	preview := c.tune(apiserver.Admin, "--undo", plan)
	wantLines(t, preview.stdout, `+      threshold: "2.0"`, "taken back", "nothing was changed: add --apply")
	if preview.err != nil || threshold(c.get("so", "r1"), 0) != "1.23" {
		t.Errorf("got %v", preview.err)
	}
	// "2.0" on the trigger is 2 on the HPA.
	follow = c.playKEDA("2.0", `[{"op":"replace","path":"`+metric+`0/external/target/averageValue","value":"2"},
		{"op":"replace","path":"`+metric+`1/external/target","value":{"type":"AverageValue","averageValue":"30"}}]`)
	undone := c.tune(apiserver.Admin, "--undo", plan, "--apply", "--settle-timeout", "30s")
	follow()
	if undone.err != nil {
		t.Fatal(undone.err)
	}
	if diff := cmp.Diff(before.Object["spec"], c.spec("so", "r1")); diff != "" {
		t.Error(diff)
	}
	wantFailure(t, c.tune(apiserver.Admin, "--undo", plan, "--apply"), failure.Differs,
		"patch ScaledObject apply/r1: the trigger is not as it was when the plan was made", "taken back already")
}

// What the table prints as the way back is a command that works.
func TestPrintedUndo(t *testing.T) {
	c := start(t, "printed")
	hostile := strings.Replace(scaledObject, `pod=~"r1-.*"`, "pod=~\"é\u202e\U000e0041🚀  ''s <b>\"", 1)
	before := c.create("so", hostile)
	c.create("hpa", hpa("keda-hpa-r1", "1230m", "12", "Value"))
	got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply", "--settle-timeout", "30s")
	if got.err != nil {
		t.Fatal(got.err)
	}
	_, rest, _ := strings.Cut(got.stdout, "To take it back yourself:\n  kubectl ")
	line, _, _ := strings.Cut(rest, "\n")
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("not printable: %q", line)
	}
	words, quoted, _ := strings.Cut(line, " -p ")
	patch := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(quoted, "'"), "'"), `'\''`, "'")
	c.server.Kubectl(t, "", append(strings.Fields(words), "-p", patch)...)
	if diff := cmp.Diff(before.Object["spec"], c.spec("so", "r1")); diff != "" {
		t.Errorf("%s\n%s", line, diff)
	}
}

// Between the plan and its execution the trigger changes.
func TestConflict(t *testing.T) {
	changes := map[string]string{
		"threshold":            `[{"op":"replace","path":"/spec/triggers/0/metadata/threshold","value":"5"}]`,
		"query":                `[{"op":"replace","path":"/spec/triggers/0/metadata/query","value":"up"}]`,
		"trigger put before":   `[{"op":"add","path":"/spec/triggers/0","value":{"type":"cpu","metadata":{"value":"80"}}}]`,
		"all triggers but one": `[{"op":"remove","path":"/spec/triggers/0"}]`,
	}
	c := start(t, "conflict")
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			c.create("so", scaledObject)
			defer c.server.Kubectl(t, "", "delete", "so", "r1", "-n", c.namespace)
			got := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "-o", "json")
			if got.err != nil {
				t.Fatal(got.err)
			}
			var plan record.TuningPlan
			if err := json.Unmarshal([]byte(got.stdout), &plan); err != nil {
				t.Fatal(err)
			}
			if err := c.patch(t.Context(), "so", "r1", change); err != nil {
				t.Fatal(err)
			}
			want := c.spec("so", "r1")
			// A plan read from a file fails.
			plan.Patch, plan.Undo = plan.Undo, plan.Patch
			data, err := record.Encode(plan)
			if err != nil {
				t.Fatal(err)
			}
			wantFailure(t, c.tune(apiserver.Admin, "--undo", write(t, "plan.json", data), "--apply"), failure.Differs,
				"patch ScaledObject conflict/r1: the trigger is not as it was when the plan was made", "kubectl get scaledobject r1 -n conflict -o yaml")
			// So does a plan made a moment ago.
			plan.Patch, plan.Undo = plan.Undo, plan.Patch
			t.Setenv("KUBECONFIG", c.server.Kubeconfig(apiserver.Admin))
			o := &options{factory: kube.NewFactory("test", nil), streams: term.New(nil, io.Discard, io.Discard, nil), apply: true}
			wantFailure(t, result{err: o.carryOut(t.Context(), plan)}, failure.Differs, "the trigger is not as it was when the plan was made", "plans anew")
			if diff := cmp.Diff(want, c.spec("so", "r1")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestManaged(t *testing.T) {
	c := start(t, "managed")
	c.create("so", strings.Replace(scaledObject, "annotations: {}", `annotations: {argocd.argoproj.io/tracking-id: "platform:keda.sh/ScaledObject:managed/r1"}`, 1))
	c.create("hpa", hpa("keda-hpa-r1", "1230m", "12", "Value"))
	preview := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t))
	wantLines(t, preview.stdout, "Argo CD application platform keeps this object: commit the difference there")
	refused := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply")
	wantFailure(t, refused, failure.Usage, "ScaledObject r1 is kept by Argo CD application platform, which would write over it", "--even-if-managed")
	wantLines(t, refused.stderr, `+      threshold: "1.23"`)
	if refused.stdout != "" || threshold(c.get("so", "r1"), 0) != "2.0" {
		t.Errorf("got %q", refused.stdout)
	}
	forced := c.tune(apiserver.Admin, "so/r1", "--from", envelope(t), "--apply", "--even-if-managed", "--settle-timeout", "30s")
	if forced.err != nil || threshold(c.get("so", "r1"), 0) != "1.23" {
		t.Errorf("got %v", forced.err)
	}
}
