package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// apply carries out a JSON Patch on a copy, as strictly as RFC 6902 asks: what
// is tested, replaced or removed must be there.
func apply(t *testing.T, value map[string]any, patch []record.PatchOperation) (map[string]any, error) {
	t.Helper()
	result := copyOf(t, value)
	for _, operation := range patch {
		keys := strings.Split(strings.TrimPrefix(operation.Path, "/"), "/")
		last := keys[len(keys)-1]
		parent, ok := at(result, keys[:len(keys)-1]...).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s %s: nothing is there", operation.Op, operation.Path)
		}
		live, there := parent[last]
		switch {
		case operation.Op != "add" && !there:
			return nil, fmt.Errorf("%s %s: nothing is there", operation.Op, operation.Path)
		case operation.Op == "test" && !reflect.DeepEqual(live, operation.Value):
			return nil, fmt.Errorf("test %s: %v is not %v", operation.Path, live, operation.Value)
		case operation.Op == "remove":
			delete(parent, last)
		case operation.Op == "add", operation.Op == "replace":
			parent[last] = operation.Value
		}
	}
	return result, nil
}

// randomTrigger is a trigger of any sort, with what an object may lack.
func randomTrigger(random *rand.Rand) string {
	queries := []string{"sum(vllm:num_requests_waiting)", "sum(vllm:kv_cache_usage_perc)", "avg(vllm:num_requests_running)",
		"histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m])))"}
	metricType := []string{"", ", metricType: Value", ", metricType: AverageValue"}[random.IntN(3)]
	threshold := []string{"", fmt.Sprintf(", threshold: '%.4f'", random.Float64()*40), ", threshold: '12'"}[random.IntN(3)]
	return "{type: prometheus" + metricType + ", metadata: {query: '" + queries[random.IntN(len(queries))] + "'" + threshold + "}}"
}

// randomPair is a ScaledObject and its owner, which may be none.
func randomPair(t *testing.T, random *rand.Rand) (scaledObject, owner map[string]any) {
	t.Helper()
	var triggers, metrics []string
	for range random.IntN(6) {
		trigger := randomTrigger(random)
		triggers = append(triggers, trigger)
		query := text(object(t, trigger), "metadata", "query")
		value := strconv.FormatFloat(random.Float64()*9, 'f', random.IntN(3), 64)
		metrics = append(metrics, "{external: {metric: {query: '"+query+"'}, target: {value: "+value+"}}}")
	}
	scaledObject = object(t, scaler("pd-kserve"+[]string{"", "-prefill"}[random.IntN(2)], triggers...))
	list := "[" + strings.Join(triggers, ", ") + "]"
	switch random.IntN(3) {
	case 1:
		owner = object(t, "kind: InferenceService\nmetadata: {name: r1}\nspec: {predictor: {autoScaling: {metrics: ["+strings.Join(metrics, ", ")+"]}}}")
	case 2:
		owner = object(t, "kind: LLMInferenceService\nmetadata: {name: pd}\nspec: {scaling: {keda: {triggers: "+list+"}}, prefill: {scaling: {keda: {triggers: "+list+"}}}}")
	}
	return scaledObject, owner
}

func TestUndoIsTheInverse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for i := range 3000 {
		so, controller := randomPair(t, random)
		owner, err := OwnerOf(so, controller)
		if err != nil {
			t.Fatal(err)
		}
		given := envelope()
		given.Shapes[0].Thresholds = append(given.Shapes[0].Thresholds, record.Threshold{Trigger: record.TriggerKV, MetricType: record.MetricTypeAverageValue, Threshold: number(random.Float64())})
		plan, err := Make(Input{ScaledObject: parsed(t, so), Owner: owner, Envelope: given})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(plan.Changes) + len(plan.Kept); got != len(parsed(t, so).Spec.Triggers) {
			t.Fatalf("%d: %d triggers are accounted for", i, got)
		}
		before := so
		if controller != nil {
			before = controller
		}
		after, err := apply(t, before, plan.Patch)
		if err != nil {
			t.Fatalf("%d: patch: %v", i, err)
		}
		if reflect.DeepEqual(before, after) != (len(plan.Changes) == 0) {
			t.Fatalf("%d: %d changes: %s", i, len(plan.Changes), cmp.Diff(before, after))
		}
		back, err := apply(t, after, plan.Undo)
		if err != nil {
			t.Fatalf("%d: undo: %v", i, err)
		}
		if diff := cmp.Diff(before, back); diff != "" {
			t.Fatalf("%d: %s", i, diff)
		}
		if len(plan.Changes) == 0 {
			continue
		}
		changed++
		// Neither works twice. A patch that only adds a member may, and then
		// does nothing.
		if again, err := apply(t, after, plan.Patch); err == nil && !reflect.DeepEqual(after, again) {
			t.Fatalf("%d: the patch works twice", i)
		}
		if _, err := apply(t, before, plan.Undo); err == nil {
			t.Fatalf("%d: undo works on what was not changed", i)
		}
	}
	if changed < 500 {
		t.Errorf("only %d plans change anything", changed)
	}
}
