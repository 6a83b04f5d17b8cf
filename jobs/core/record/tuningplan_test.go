package record

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

func TestTuningPlanRoundTrip(t *testing.T) {
	before := 2.2
	self := TuningObject{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Namespace: "models", Name: "r1"}
	plan := TuningPlan{
		TypeMeta: Meta(KindTuningPlan), Owner: self, ScaledObject: self, Managed: "Argo CD application platform",
		Model: "org/model", Shape: "1024/128", Runs: []string{"run-1"},
		Changes: []TuningChange{
			{Trigger: "queue depth", Signal: TriggerWaiting, From: "2", To: "1.23", MetricType: MetricTypeAverageValue, PreviousMetricType: MetricTypeAverageValue,
				ActsAboveBefore: &before, ActsAboveAfter: 1.353, Why: "a < b & c", Evidence: []Evidence{}},
			{Index: 1, Trigger: "p99 latency", From: "x", To: "12", MetricType: MetricTypeValue, PreviousMetricType: MetricTypeAverageValue, Evidence: []Evidence{}},
		},
		Kept: []TuningKept{{Index: 2, Trigger: "cpu", Why: "not measured"}},
		Patch: []PatchOperation{
			{Op: "test", Path: "/spec/triggers/0/metadata/threshold", Value: "2"},
			{Op: "add", Path: "/spec/triggers/1/metricType", Value: "Value"},
		},
		Undo: []PatchOperation{
			{Op: "replace", Path: "/spec/predictor/autoScaling/metrics/0/external/target/value", Value: 2.5},
			{Op: "replace", Path: "/a", Value: ""},
			{Op: "remove", Path: "/spec/triggers/1/metricType"},
		},
	}
	data, err := Encode(plan)
	if err != nil {
		t.Fatal(err)
	}
	var got TuningPlan
	if err := Decode(data, KindTuningPlan, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, got); diff != "" {
		t.Error(diff)
	}
	// People read it: signs stay as they are, what is not known is null.
	for _, part := range []string{`"why": "a < b & c"`, `"acts_above_before": null`, `"managed_by": "Argo CD application platform"`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%s is missing in %s", part, data)
		}
	}
}

// RFC 6902: "remove" has no value, every other operation has, an empty one too.
func TestPatchOperation(t *testing.T) {
	for want, operation := range map[string]PatchOperation{
		`{"op":"remove","path":"/a"}`:             {Op: "remove", Path: "/a"},
		`{"op":"test","path":"/a","value":""}`:    {Op: "test", Path: "/a", Value: ""},
		`{"op":"test","path":"/a","value":0}`:     {Op: "test", Path: "/a", Value: int64(0)},
		`{"op":"test","path":"/a","value":false}`: {Op: "test", Path: "/a", Value: false},
	} {
		if got, err := json.Marshal(operation); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}

func TestTuningPlanRefused(t *testing.T) {
	tests := map[string]struct{ text, want, hint string }{
		"another kind":    {`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"RolloutPlan"}`, `read TuningPlan: the document is of kind "RolloutPlan"`, ""},
		"a later version": {`{"apiVersion":"kubectl-inference.io/v1","kind":"TuningPlan"}`, `version "kubectl-inference.io/v1" is not known`, "release that wrote it"},
		"not a document":  {`[]`, "read TuningPlan: not a JSON document", ""},
		"another type":    {`{"apiVersion":"kubectl-inference.io/v1alpha1","kind":"TuningPlan","patch":"x"}`, "read TuningPlan: ", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var plan TuningPlan
			err := Decode([]byte(test.text), KindTuningPlan, &plan)
			if err == nil || !strings.Contains(err.Error(), test.want) || failure.KindOf(err) != failure.Usage || !strings.Contains(failure.HintOf(err), test.hint) {
				t.Errorf("got %v, hint %q", err, failure.HintOf(err))
			}
		})
	}
}
