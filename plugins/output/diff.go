package output

import (
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// Diff returns the unified diff of two states of an object, "" when they are
// equal. A nil side means that the object does not exist. What the server keeps
// for itself (managed fields, resource version, status) is left out.
func Diff(name string, before, after *unstructured.Unstructured) (string, error) {
	old, err := shown(before)
	if err != nil {
		return "", err
	}
	new, err := shown(after)
	if err != nil {
		return "", err
	}
	return udiff.Unified("live/"+name, "proposed/"+name, old, new), nil
}

func shown(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	clean := object.DeepCopy()
	unstructured.RemoveNestedField(clean.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(clean.Object, "metadata", field)
	}
	data, err := yaml.Marshal(clean.Object)
	return string(data), err
}

// ColorDiff colours the lines of a unified diff.
func ColorDiff(diff string) string {
	var text strings.Builder
	for line := range strings.Lines(diff) {
		body := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			body = term.Bold(body)
		case strings.HasPrefix(line, "+"):
			body = term.Good(body)
		case strings.HasPrefix(line, "-"):
			body = term.Bad(body)
		case strings.HasPrefix(line, "@@"):
			body = term.Accent(body)
		}
		text.WriteString(body + "\n")
	}
	return text.String()
}
