package explain

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/kube"
)

// largestDocument bounds one saved object; etcd holds none above 1.5 MiB.
const largestDocument = 16 << 20

// readFiles reads saved objects: YAML or JSON, several documents, lists as
// `kubectl get -o yaml` writes them. "-" is standard input.
func readFiles(paths []string, stdin io.Reader) (chain.Objects, error) {
	var objects chain.Objects
	for _, path := range paths {
		if err := readFile(&objects, path, stdin); err != nil {
			return objects, failure.New(failure.Usage, "give what `kubectl get hpa,scaledobject,deployment,pods,events -o yaml` writes", "read %s: %w", path, err)
		}
	}
	return objects, nil
}

func readFile(objects *chain.Objects, path string, stdin io.Reader) error {
	if path == "-" {
		return readObjects(objects, stdin)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return readDirectory(objects, path)
	}
	file, err := os.Open(path)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			return pathError.Err
		}
		return err
	}
	defer file.Close()
	return readObjects(objects, file)
}

// readDirectory reads the YAML files of a directory, as --record writes them.
func readDirectory(objects *chain.Objects, path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		if entry.IsDir() || entry.Name() == recordingFile || (extension != ".yaml" && extension != ".yml" && extension != ".json") {
			continue
		}
		if err := readFile(objects, filepath.Join(path, entry.Name()), nil); err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	return nil
}

func readObjects(objects *chain.Objects, r io.Reader) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(io.LimitReader(r, largestDocument)), 4096)
	for n := 1; ; n++ {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		// A document of comments only is nothing.
		if content := bytes.TrimSpace(document.Raw); len(content) == 0 || bytes.Equal(content, []byte("null")) {
			continue
		}
		if err := addDocument(objects, document.Raw); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

func addDocument(objects *chain.Objects, data []byte) error {
	decoded, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return fmt.Errorf("it is no Kubernetes object: %w", err)
	}
	switch object := decoded.(type) {
	case *unstructured.UnstructuredList:
		for i := range object.Items {
			if err := kube.AddToChains(objects, &object.Items[i]); err != nil {
				return err
			}
		}
	case *unstructured.Unstructured:
		return kube.AddToChains(objects, object)
	}
	return nil
}
