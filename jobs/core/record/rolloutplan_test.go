package record

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRolloutPlanRoundTrip(t *testing.T) {
	plan := RolloutPlan{
		TypeMeta: Meta(KindRolloutPlan), Name: "web", Namespace: "models",
		Model:    RolloutModel{URI: "s3://models/a/b", Revision: strings.Repeat("0a", 20), S3Endpoint: "http://s3:9000", S3Region: "eu"},
		Verify:   VerifyFast,
		Objects:  []json.RawMessage{json.RawMessage(`{"kind":"Deployment","spec":{"big":9007199254740993}}`), json.RawMessage(`{"kind":"Service"}`)},
		Workload: map[string]string{"component": "predictor"}, URL: "http://web-predictor.models.svc", ServedModel: "chat", TimeoutSeconds: 1800,
	}
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var got RolloutPlan
	if err := Decode(data, KindRolloutPlan, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, got); diff != "" {
		t.Error(diff)
	}
}

// What is not known of a start is null, never 0.
func TestColdStartRoundTrip(t *testing.T) {
	loaded, length := 0.0, 15000
	created := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	start := ColdStart{
		TypeMeta: Meta(KindColdStart), Name: "web", Namespace: "models", Model: "s3://models/a/b", ModelID: "a/b", Revision: "abc",
		Finished: created.Add(time.Minute), ServedModel: "chat", MaxModelLen: &length,
		Replicas: []ReplicaStart{{Pod: "web-1", Node: "gpu-1", Image: "example.test/vllm:1", Created: created, LoadedSeconds: &loaded, TotalSeconds: 12.5}},
	}
	data, err := Encode(start)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"queued_seconds": null`, `"loaded_seconds": 0`, `"created": "2026-11-30T12:00:00Z"`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%s is missing in %s", part, data)
		}
	}
	var got ColdStart
	if err := Decode(data, KindColdStart, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(start, got, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error(diff)
	}
}
