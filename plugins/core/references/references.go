// Package references finds in an object of Kubernetes which places of a bucket
// it refers to: by a URL or BUCKET/PREFIX in any of its strings, by a bucket with
// a prefix beside it, as a CSI volume, as storage of KServe, or by a commit id
// anywhere. It errs towards finding too much: what is found is not deleted.
package references

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

var commit = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// planEnv is the environment variable that holds the plan of our own Jobs.
const planEnv = "INFERENCE_PLAN"

// Find returns what object refers to in a bucket. Ended pods and Jobs refer to
// nothing any more.
func Find(object map[string]any, bucket string) []record.Reference {
	kind, _ := object["kind"].(string)
	if ended(kind, object) {
		return nil
	}
	f := &finder{bucket: bucket, forms: formsOf(bucket), holder: holder(kind, object)}
	if ours(kind, object) {
		f.sync(object)
		return f.found
	}
	if kind == "Secret" {
		f.secret, object = true, decoded(object)
	}
	f.walk(object, true)
	return f.found
}

type finder struct {
	bucket, holder string
	forms          forms
	secret         bool
	found          []record.Reference
}

func (f *finder) add(prefix, revision string) {
	reference := record.Reference{Prefix: strings.Trim(path.Clean("/"+prefix), "/"), Revision: revision, Holder: f.holder}
	if !slices.Contains(f.found, reference) {
		f.found = append(f.found, reference)
	}
}

// lastApplied is the annotation that repeats what was applied once.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// walk looks at every string below a value, annotations of templates included:
// KServe names the source of a model there. attributes says whether a bucket
// without a place before it counts.
func (f *finder) walk(value any, attributes bool) {
	switch value := value.(type) {
	case map[string]any:
		if attributes {
			f.attributes(value, value["mountOptions"])
		}
		for key, below := range value {
			csi, isCSI := below.(map[string]any)
			switch {
			case key == lastApplied, key == "managedFields":
			case key == "csi" && isCSI:
				f.volume(csi, value["mountOptions"])
			case key == "parameters" && value["mountOptions"] != nil:
				// A StorageClass.
				parameters, _ := below.(map[string]any)
				f.attributes(parameters, value["mountOptions"])
				f.walk(below, false)
			case key == "storage":
				f.walk(below, attributes && !f.storage(below))
			default:
				f.walk(below, attributes)
			}
		}
	case []any:
		if attributes {
			f.attributes(variables(value), nil)
		}
		for _, below := range value {
			f.walk(below, attributes)
		}
	case string:
		f.text(value)
	}
}

// storage reads KServe's storage: a path in a bucket that a Secret may name, so
// that a path without a bucket could be in any. It says whether that is what it
// is.
func (f *finder) storage(value any) bool {
	storage, _ := value.(map[string]any)
	key, ok := storage["path"].(string)
	parameters, _ := storage["parameters"].(map[string]any)
	bucket, _ := parameters["bucket"].(string)
	if !ok || strings.Contains(key, "://") {
		return false
	}
	if bucket == "" || bucket == f.bucket {
		f.add(key, "")
	}
	return true
}

// sync reads a running Job of ours. A sync writes somewhere below its
// destination; verify and prune write nothing.
func (f *finder) sync(object map[string]any) {
	var find func(any)
	find = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if value["name"] == planEnv {
				f.plan(value["value"])
			}
			for _, below := range value {
				find(below)
			}
		case []any:
			for _, below := range value {
				find(below)
			}
		}
	}
	find(object["spec"])
}

func (f *finder) plan(value any) {
	text, _ := value.(string)
	var plan record.SyncPlan
	// Kubernetes expands variables in values; a plan is written with $$ for $.
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "$$", "$")), &plan); err != nil || plan.Kind != record.KindSyncPlan {
		return
	}
	bucket, prefix, err := plan.Bucket()
	if err != nil || bucket != f.bucket {
		return
	}
	if !plan.Flat {
		prefix = path.Join(prefix, plan.Repo)
	}
	f.holder = "the running sync of " + f.holder
	f.add(prefix, "")
}

// ours says whether an object is a Job, or its pod, that works on buckets.
func ours(kind string, object map[string]any) bool {
	if kind != "Job" && kind != "Pod" {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	component, _ := labels["app.kubernetes.io/component"].(string)
	return labels["app.kubernetes.io/name"] == "kubectl-inference" && slices.Contains([]string{"sync", "verify", "prune"}, component)
}

func ended(kind string, object map[string]any) bool {
	status, _ := object["status"].(map[string]any)
	switch kind {
	case "Pod":
		return status["phase"] == "Succeeded" || status["phase"] == "Failed"
	case "Job":
		conditions, _ := status["conditions"].([]any)
		return slices.ContainsFunc(conditions, func(condition any) bool {
			values, _ := condition.(map[string]any)
			return values["status"] == "True" && (values["type"] == "Complete" || values["type"] == "Failed")
		})
	}
	return false
}

func holder(kind string, object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %s", kind, name)
}
