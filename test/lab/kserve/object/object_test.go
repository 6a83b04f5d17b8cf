package object_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

func TestChildName(t *testing.T) {
	tests := map[string]struct{ parent, suffix, want string }{
		"short":         {"pd", "-kserve", "pd-kserve"},
		"just fits":     {strings.Repeat("a", 56), "-kserve", strings.Repeat("a", 56) + "-kserve"},
		"one too many":  {strings.Repeat("a", 57), "-kserve", strings.Repeat("a", 24) + "652b906d60af96844ebd21b674f35e93" + "-kserve"},
		"longer suffix": {strings.Repeat("b", 60), "-kserve-workload-svc", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := object.ChildName(test.parent, test.suffix)
			if test.want != "" && got != test.want {
				t.Errorf("name %s, want %s", got, test.want)
			}
			if len(test.parent)+len(test.suffix) <= 63 {
				return
			}
			if len(got) != 63 || !strings.HasSuffix(got, test.suffix) || got[:10] != test.parent[:10] {
				t.Errorf("name %s of %d characters", got, len(got))
			}
			if other := object.ChildName(test.parent+"x", test.suffix); other == got {
				t.Errorf("two parents share the name %s", got)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	early := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	late := early.Add(time.Minute)
	base := object.Conditions{}.
		Set(object.Condition{Type: "Ready", Status: object.True}, early).
		Set(object.Condition{Type: "A", Status: object.True, Message: "first"}, early)
	tests := map[string]struct {
		set  object.Condition
		want object.Conditions
	}{
		"nothing changes, the time stays": {
			object.Condition{Type: "A", Status: object.True, Message: "first"},
			object.Conditions{
				{Type: "A", Status: object.True, Message: "first", LastTransitionTime: "2026-08-01T10:00:00Z"},
				{Type: "Ready", Status: object.True, LastTransitionTime: "2026-08-01T10:00:00Z"},
			},
		},
		"another message moves the time": {
			object.Condition{Type: "A", Status: object.True, Message: "second"},
			object.Conditions{
				{Type: "A", Status: object.True, Message: "second", LastTransitionTime: "2026-08-01T10:01:00Z"},
				{Type: "Ready", Status: object.True, LastTransitionTime: "2026-08-01T10:00:00Z"},
			},
		},
		"a new one is sorted in": {
			object.Condition{Type: "B", Status: object.False, Reason: "Why"},
			object.Conditions{
				{Type: "A", Status: object.True, Message: "first", LastTransitionTime: "2026-08-01T10:00:00Z"},
				{Type: "B", Status: object.False, Reason: "Why", LastTransitionTime: "2026-08-01T10:01:00Z"},
				{Type: "Ready", Status: object.True, LastTransitionTime: "2026-08-01T10:00:00Z"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := cmp.Diff(base, object.Conditions{})
			if diff := cmp.Diff(test.want, base.Set(test.set, late)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if after := cmp.Diff(base, object.Conditions{}); after != before {
				t.Error("the conditions it was called on changed")
			}
		})
	}
	if left := base.Drop("A"); len(left) != 1 || len(base) != 2 {
		t.Errorf("left %v of %v", left, base)
	}
}

func TestSummary(t *testing.T) {
	good := object.Condition{Type: "A", Status: object.True}
	bad := object.Condition{Type: "B", Status: object.False, Reason: "Why", Message: "because"}
	tests := map[string]struct {
		conditions object.Conditions
		want       object.Condition
	}{
		"all true":           {object.Conditions{good, {Type: "B", Status: object.True}}, object.Condition{Type: "Ready", Status: object.True}},
		"one missing":        {object.Conditions{good}, object.Condition{Type: "Ready", Status: object.Unknown}},
		"one false":          {object.Conditions{good, bad}, object.Condition{Type: "Ready", Status: object.False, Reason: "Why", Message: "because"}},
		"false over missing": {object.Conditions{bad}, object.Condition{Type: "Ready", Status: object.False, Reason: "Why", Message: "because"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.conditions.Summary("Ready", "A", "B")); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnedAndFromTyped(t *testing.T) {
	owner := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
		"metadata": map[string]any{"name": "a", "namespace": "n", "uid": "u"},
	}}
	got, err := object.FromTyped(&appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: object.Owned(owner, "a-predictor", object.Union(map[string]string{"x": "1"}, map[string]string{"x": "2"}), object.Union(nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "a-predictor", "namespace": "n", "labels": map[string]any{"x": "2"},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "a", "uid": "u",
			"controller": true, "blockOwnerDeletion": true,
		}},
	}
	if diff := cmp.Diff(any(want), got.Object["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if _, found := got.Object["status"]; found {
		t.Error("it has a status")
	}
}
