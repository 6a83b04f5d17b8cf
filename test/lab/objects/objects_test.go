package objects

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const stream = `# only a comment
---
apiVersion: v1
kind: Service
metadata: {name: s3, namespace: storage}
---
---
apiVersion: v1
kind: Namespace
metadata: {name: storage}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.test}
`

func names(list []*unstructured.Unstructured) []string {
	var names []string
	for _, o := range list {
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	return names
}

func TestDecode(t *testing.T) {
	list, err := Decode(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Service s3", "Namespace storage", "CustomResourceDefinition things.example.test"}
	if diff := cmp.Diff(want, names(list)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if _, err := Decode(strings.NewReader("a: [")); err == nil {
		t.Error("broken YAML was read")
	}
}

func TestReadFilesNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(path, []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".absent"} {
		if _, err := ReadFiles(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}

// What others need comes first, whatever the order in the files.
func TestPhases(t *testing.T) {
	list, err := Decode(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, phase := range phases(list) {
		got = append(got, names(phase))
	}
	want := [][]string{{"Namespace storage", "CustomResourceDefinition things.example.test"}, {"Service s3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}

func TestPasses(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"kind not known yet":  {&meta.NoKindMatchError{}, true},
		"namespace not there": {apierrors.NewNotFound(pods, "x"), true},
		"webhook not there":   {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"connection refused":  {errors.New("connection refused"), true},
		"invalid":             {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil), false},
		"forbidden":           {apierrors.NewForbidden(pods, "x", errors.New("no")), false},
		"bad request":         {apierrors.NewBadRequest("unknown field"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := passes(tt.err); got != tt.want {
				t.Errorf("passes %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRolledOut(t *testing.T) {
	type status = map[string]any
	tests := map[string]struct {
		generation int64
		status     status
		want       string
	}{
		"done":             {2, status{"observedGeneration": int64(2), "replicas": int64(2), "updatedReplicas": int64(2), "availableReplicas": int64(2)}, ""},
		"not looked at":    {2, status{"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "availableReplicas": int64(2)}, "not looked at yet"},
		"being made":       {1, status{"observedGeneration": int64(1), "updatedReplicas": int64(1)}, "1 of 2 replicas are new"},
		"old ones left":    {1, status{"observedGeneration": int64(1), "replicas": int64(3), "updatedReplicas": int64(2), "availableReplicas": int64(3)}, "1 old replicas are left"},
		"not ready":        {1, status{"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "availableReplicas": int64(1)}, "1 of 2 replicas are available"},
		"no status at all": {1, status{}, "not looked at yet"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"generation": tt.generation}, "spec": map[string]any{"replicas": int64(2)}, "status": tt.status,
			}}
			got := ""
			if err := rolledOut(live); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("state %q, want %q", got, tt.want)
			}
		})
	}
}
