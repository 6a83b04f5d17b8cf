package plan

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

func input(t *testing.T, text string) Input {
	t.Helper()
	so := object(t, text)
	owner, err := OwnerOf(so, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Input{ScaledObject: parsed(t, so), Owner: owner, Envelope: envelope()}
}

func TestMake(t *testing.T) {
	got, err := Make(input(t, scaledObjectText))
	if err != nil {
		t.Fatal(err)
	}
	evidence := envelope().Shapes[0].Thresholds[0].Evidence
	const waiting, latency = "/spec/triggers/0", "/spec/triggers/1"
	const askWaiting = "sum(vllm:num_requests_waiting)"
	const askLatency = "histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))"
	self := record.TuningObject{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Namespace: "models", Name: "r1"}
	want := record.TuningPlan{
		TypeMeta: record.Meta(record.KindTuningPlan), Owner: self, ScaledObject: self,
		Model: "org/model", Shape: "1024/128", Runs: []string{"run-1", "run-2"},
		Changes: []record.TuningChange{
			{Index: 0, Trigger: "queue depth", Signal: "waiting", From: "2", To: "1.23", MetricType: "AverageValue", PreviousMetricType: "AverageValue",
				ActsAboveBefore: number(2.2), ActsAboveAfter: 1.353, Why: "between 20 and 40", Evidence: evidence},
			{Index: 1, Trigger: "slow", Signal: "p99_e2e", From: "30", To: "12", MetricType: "Value", PreviousMetricType: "AverageValue",
				ActsAboveBefore: number(33), ActsAboveAfter: 13.2, Why: "at the planned load", Evidence: evidence},
		},
		Kept: []record.TuningKept{
			{Index: 2, Trigger: "p99 latency", Why: "request_inference_time leaves out the time in the queue, so it cannot see a queue grow; ask e2e_request_latency instead"},
			{Index: 3, Trigger: "cpu", Why: "a cpu trigger is not measured by bench"},
		},
		Patch: []record.PatchOperation{
			{Op: "test", Path: waiting + "/metadata/query", Value: askWaiting},
			{Op: "test", Path: waiting + "/metadata/threshold", Value: "2"},
			{Op: "replace", Path: waiting + "/metadata/threshold", Value: "1.23"},
			{Op: "test", Path: latency + "/metadata/query", Value: askLatency},
			{Op: "test", Path: latency + "/metadata/threshold", Value: "30"},
			{Op: "replace", Path: latency + "/metadata/threshold", Value: "12"},
			{Op: "test", Path: latency + "/metricType", Value: "AverageValue"},
			{Op: "replace", Path: latency + "/metricType", Value: "Value"},
		},
		Undo: []record.PatchOperation{
			{Op: "test", Path: waiting + "/metadata/query", Value: askWaiting},
			{Op: "test", Path: waiting + "/metadata/threshold", Value: "1.23"},
			{Op: "replace", Path: waiting + "/metadata/threshold", Value: "2"},
			{Op: "test", Path: latency + "/metadata/query", Value: askLatency},
			{Op: "test", Path: latency + "/metadata/threshold", Value: "12"},
			{Op: "replace", Path: latency + "/metadata/threshold", Value: "30"},
			{Op: "test", Path: latency + "/metricType", Value: "Value"},
			{Op: "replace", Path: latency + "/metricType", Value: "AverageValue"},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Error(diff)
	}
}

// TestMakeKeeps changes one thing after the other of what the first trigger's
// threshold is made from.
func TestMakeKeeps(t *testing.T) {
	waiting := func(in *Input) *record.Threshold { return &in.Envelope.Shapes[0].Thresholds[0] }
	tests := map[string]struct {
		text   string
		change func(in *Input)
		why    string
	}{
		"withheld": {scaledObjectText, func(in *Input) {
			waiting(in).Withheld = &record.Notice{Code: "few-samples", Message: "only 3 samples below the planned load"}
		}, "no threshold is advised: only 3 samples below the planned load"},
		"not in the envelope":   {scaledObjectText, func(in *Input) { waiting(in).Trigger = record.TriggerRunning }, "the envelope says nothing about waiting"},
		"no number":             {scaledObjectText, func(in *Input) { waiting(in).Threshold = nil }, "the envelope has no number for waiting"},
		"too small":             {scaledObjectText, func(in *Input) { *waiting(in).Threshold = 0.0009 }, "the measured value is below 0.001, which KEDA reads as 0"},
		"zero":                  {scaledObjectText, func(in *Input) { *waiting(in).Threshold = 0 }, "the measured value is below 0.001, which KEDA reads as 0"},
		"not a number":          {scaledObjectText, func(in *Input) { *waiting(in).Threshold = math.NaN() }, "the measured value is below 0.001, which KEDA reads as 0"},
		"equal":                 {scaledObjectText, func(in *Input) { *waiting(in).Threshold = 2.001 }, "it has the advised threshold already"},
		"equal, other spelling": {strings.Replace(scaledObjectText, `"2"`, `"2.000"`, 1), func(in *Input) { *waiting(in).Threshold = 2 }, "it has the advised threshold already"},
		"equal to KEDA":         {strings.Replace(scaledObjectText, `"2"`, `"0.0124"`, 1), func(in *Input) { *waiting(in).Threshold = 0.0121 }, "it has the advised threshold already"},
		"no threshold":          {strings.Replace(scaledObjectText, `threshold: "2", `, "", 1), func(*Input) {}, "it has no threshold on ScaledObject r1"},
		"no place for metricType": {scaledObjectText, func(in *Input) {
			in.Owner.KeepsMetricType = false
			waiting(in).MetricType = record.MetricTypeValue
		}, "it needs metricType Value, which ScaledObject r1 cannot say"},
		"formula": {strings.Replace(scaledObjectText, "spec:\n", "spec:\n  advanced: {scalingModifiers: {formula: 's0 + s1', target: '3'}}\n", 1),
			func(*Input) {}, "scalingModifiers join the triggers, and the formula's own target decides"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(t, test.text)
			test.change(&in)
			got, err := Make(in)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Kept) == 0 || got.Kept[0].Index != 0 || got.Kept[0].Why != test.why {
				t.Errorf("got %+v, want %q", got.Kept, test.why)
			}
			for _, operation := range got.Patch {
				if strings.HasPrefix(operation.Path, "/spec/triggers/0/") {
					t.Errorf("the patch has %+v", operation)
				}
			}
		})
	}
}

// A threshold that KEDA cannot read has no number to act above, and may still
// be replaced.
func TestMakeReplacesWhatIsNoNumber(t *testing.T) {
	got, err := Make(input(t, strings.Replace(scaledObjectText, `"2"`, `"two"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if change := got.Changes[0]; change.From != "two" || change.To != "1.23" || change.ActsAboveBefore != nil {
		t.Errorf("got %+v", change)
	}
}

// The member that was not there is removed again.
func TestMakeAddsMetricType(t *testing.T) {
	got, err := Make(input(t, strings.Replace(scaledObjectText, "    metricType: AverageValue\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := []record.PatchOperation{{Op: "add", Path: "/spec/triggers/1/metricType", Value: "Value"}}
	if diff := cmp.Diff(want, got.Patch[len(got.Patch)-1:]); diff != "" {
		t.Error(diff)
	}
	want = []record.PatchOperation{{Op: "test", Path: "/spec/triggers/1/metricType", Value: "Value"}, {Op: "remove", Path: "/spec/triggers/1/metricType"}}
	if diff := cmp.Diff(want, got.Undo[len(got.Undo)-2:]); diff != "" {
		t.Error(diff)
	}
}

func TestMakeChoosesShape(t *testing.T) {
	long := record.ShapeEnvelope{PromptTokens: 8192, OutputTokens: 512}
	tests := map[string]struct {
		shapes []record.ShapeEnvelope
		choose string
		want   string
		err    string
	}{
		"the only one":          {envelope().Shapes, "", "1024/128", ""},
		"the only one, named":   {envelope().Shapes, "1024/128", "1024/128", ""},
		"of two":                {append(envelope().Shapes, long), "8192/512", "8192/512", ""},
		"of two, not named":     {append(envelope().Shapes, long), "", "", `choose shape "": the envelope has 2 shapes`},
		"one that is not there": {envelope().Shapes, "1/1", "", `choose shape "1/1": the envelope has 1 shapes`},
		"none":                  {nil, "", "", `choose shape "": the envelope has 0 shapes`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(t, scaledObjectText)
			in.Envelope.Shapes, in.Shape = test.shapes, test.choose
			got, err := Make(in)
			if test.err != "" {
				if err == nil || err.Error() != test.err || failure.KindOf(err) != failure.Usage {
					t.Errorf("got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil || got.Shape != test.want {
				t.Errorf("got %q, %v", got.Shape, err)
			}
		})
	}
}

// A document has lists where nothing is known, never null.
func TestMakeOfNothing(t *testing.T) {
	in := input(t, scaledObjectText)
	in.ScaledObject.Spec.Triggers, in.Envelope.Runs = nil, nil
	got, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := record.Encode(got)
	if err != nil || strings.Contains(string(data), "null") {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestFormat(t *testing.T) {
	for want, values := range map[string][]float64{
		"0.001": {0.001, 0.00149}, "0.012": {0.01234, 0.012}, "0.123": {0.1234}, "0.75": {0.75, 0.7499999}, "1": {1, 0.9999},
		"1.23": {1.2349}, "12.3": {12.345}, "123": {123.45}, "1230": {1234.5}, "1230000": {1234567}, "0": {0, math.NaN()},
	} {
		for _, value := range values {
			if got := Format(value); got != want {
				t.Errorf("Format(%v) = %q, want %q", value, got, want)
			}
		}
	}
	// What was formatted stays as it is, and stays near.
	for value := 0.001; value < 1e6; value *= 1.0137 {
		text := Format(value)
		read, err := strconv.ParseFloat(text, 64)
		if err != nil || Format(read) != text || math.Abs(read-value) > max(0.0005, value*0.005)*1.000001 {
			t.Errorf("Format(%v) = %q, read as %v, %v", value, text, read, err)
		}
	}
}
