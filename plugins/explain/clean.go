package explain

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// cleaned is a document without control characters in any of its texts, for the
// terminal: names, messages and queries come from servers and from files. One
// place for all of them, so that no new field is forgotten.
func cleaned[T any](document T) (T, error) {
	var clean T
	data, err := json.Marshal(document)
	if err != nil {
		return clean, fmt.Errorf("show explanation: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return clean, fmt.Errorf("show explanation: %w", err)
	}
	if data, err = json.Marshal(cleanTree(tree)); err != nil {
		return clean, fmt.Errorf("show explanation: %w", err)
	}
	if err := json.Unmarshal(data, &clean); err != nil {
		return clean, fmt.Errorf("show explanation: %w", err)
	}
	return clean, nil
}

func cleanTree(tree any) any {
	switch node := tree.(type) {
	case string:
		return failure.Clean(node)
	case []any:
		for i := range node {
			node[i] = cleanTree(node[i])
		}
	case map[string]any:
		for key := range node {
			node[key] = cleanTree(node[key])
		}
	}
	return tree
}
