package object

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Owned returns the metadata of a child of owner in owner's namespace, with
// owner as its controller.
func Owned(owner *unstructured.Unstructured, name string, labels, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   owner.GetNamespace(),
		Labels:      labels,
		Annotations: annotations,
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, owner.GroupVersionKind()),
		},
	}
}

// Union returns all maps in one; where they disagree the last has its way. It
// is nil when there is nothing in it.
func Union(all ...map[string]string) map[string]string {
	union := map[string]string{}
	for _, one := range all {
		maps.Copy(union, one)
	}
	if len(union) == 0 {
		return nil
	}
	return union
}

// Without returns a copy of m without the keys.
func Without(m map[string]string, keys ...string) map[string]string {
	rest := maps.Clone(m)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}

// FromTyped returns a typed object as unstructured, without its status.
func FromTyped(typed runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("convert object: %w", err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// Decode reads a part of an unstructured object into target by its JSON names,
// ignoring those it does not know.
func Decode(part, target any) error {
	content, err := json.Marshal(part)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := json.Unmarshal(content, target); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// Encode returns value as the plain maps, lists and numbers that unstructured
// objects are made of.
func Encode(value any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return content, nil
}
