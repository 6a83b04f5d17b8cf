package kserve

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed crds/*.yaml admission/*.yaml manifests/*.yaml
var files embed.FS

// CRDs returns the lab's definitions of KServe's resources. They must be
// established before the rest is applied.
func CRDs() ([]*unstructured.Unstructured, error) { return read("crds") }

// Admission returns the policies which stand in for KServe's webhooks. They
// apply to KServe's own definitions as well.
func Admission() ([]*unstructured.Unstructured, error) { return read("admission") }

// Manifests returns the namespace, the permissions and the Deployment of the
// reconciler, and the presets that it merges under every LLMInferenceService.
func Manifests() ([]*unstructured.Unstructured, error) { return read("manifests") }

// read decodes every document of a folder, by file name and then in order.
func read(folder string) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, folder+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		found, err := Decode(content)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// Decode reads the objects of a stream of YAML documents, skipping empty ones.
func Decode(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decode object: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
