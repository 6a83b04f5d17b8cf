package record

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
)

// APIVersion is the version of every document except _MANIFEST.json, which
// keeps the seed's numbering (schema_version).
const APIVersion = "kubectl-inference.io/v1alpha1"

// TypeMeta names a document's version and kind.
type TypeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Meta returns the TypeMeta of this version for kind.
func Meta(kind string) TypeMeta { return TypeMeta{APIVersion: APIVersion, Kind: kind} }

// Decode reads a document of the wanted kind from JSON into out. A document of
// another kind, or of a version that this build does not know, is refused with
// the version it has.
func Decode(data []byte, kind string, out any) error {
	var meta TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		return failure.New(failure.Usage, "", "read %s: not a JSON document: %w", kind, err)
	}
	if meta.Kind != kind {
		return failure.New(failure.Usage, "", "read %s: the document is of kind %q", kind, meta.Kind)
	}
	if meta.APIVersion != APIVersion {
		hint := "use the kubectl-inference release that wrote it, or a newer one"
		if !strings.HasPrefix(meta.APIVersion, "kubectl-inference.io/") {
			hint = ""
		}
		return failure.New(failure.Usage, hint, "read %s: version %q is not known, this build reads %s", kind, meta.APIVersion, APIVersion)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return failure.New(failure.Usage, "", "read %s: %w", kind, err)
	}
	return nil
}

// Encode writes a document as indented JSON that ends in a line feed.
// Characters such as < are not escaped: people read these files.
func Encode(document any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}
