// Package references finds in an object of Kubernetes which places of a bucket
// it refers to: by an s3:// URL in any of its strings, as a volume of the
// Mountpoint S3 CSI driver, as storage of KServe, or by a commit id anywhere.
// It errs towards finding too much: what is found is not deleted.
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

var (
	commit = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
	place  = regexp.MustCompile(`\bs3[an]?://([^/\s"'` + "`" + `,;)]+)(/[^\s"'` + "`" + `,;)]*)?`)
)

// planEnv is the environment variable that holds the plan of our own Jobs.
const planEnv = "INFERENCE_PLAN"

// Find returns what object refers to in a bucket. Ended pods and Jobs refer to
// nothing any more.
func Find(object map[string]any, bucket string) []record.Reference {
	kind, _ := object["kind"].(string)
	if ended(kind, object) {
		return nil
	}
	f := &finder{bucket: bucket, holder: holder(kind, object)}
	if ours(kind, object) {
		f.sync(object)
		return f.found
	}
	if kind == "PersistentVolume" {
		f.volume(object)
	}
	f.walk(object)
	return f.found
}

type finder struct {
	bucket, holder string
	found          []record.Reference
}

func (f *finder) add(prefix, revision string) {
	reference := record.Reference{Prefix: strings.Trim(path.Clean("/"+prefix), "/"), Revision: revision, Holder: f.holder}
	if !slices.Contains(f.found, reference) {
		f.found = append(f.found, reference)
	}
}

// walk looks at every string below a value. Metadata is told by others: its
// annotations repeat what was applied once.
func (f *finder) walk(value any) {
	switch value := value.(type) {
	case map[string]any:
		f.storage(value)
		for key, below := range value {
			if key != "metadata" {
				f.walk(below)
			}
		}
	case []any:
		for _, below := range value {
			f.walk(below)
		}
	case string:
		for _, match := range place.FindAllStringSubmatch(value, -1) {
			if match[1] == f.bucket {
				f.add(match[2], "")
			}
		}
		for _, id := range commit.FindAllString(value, -1) {
			f.add("", id)
		}
	}
}

// storage reads KServe's storage: a path in a bucket that a Secret may name, so
// that a path without a bucket could be in any.
func (f *finder) storage(value map[string]any) {
	storage, ok := value["storage"].(map[string]any)
	if !ok {
		return
	}
	key, ok := storage["path"].(string)
	parameters, _ := storage["parameters"].(map[string]any)
	bucket, _ := parameters["bucket"].(string)
	if ok && !strings.Contains(key, "://") && (bucket == "" || bucket == f.bucket) {
		f.add(key, "")
	}
}

// volume reads a volume of the Mountpoint S3 CSI driver: the bucket is an
// attribute, the prefix a mount option, and without one it is the whole bucket.
func (f *finder) volume(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	csi, _ := spec["csi"].(map[string]any)
	attributes, _ := csi["volumeAttributes"].(map[string]any)
	if driver, _ := csi["driver"].(string); !strings.Contains(driver, "s3") {
		return
	}
	if name, _ := attributes["bucketName"].(string); name != f.bucket && attributes["bucket"] != f.bucket {
		return
	}
	prefix := ""
	options, _ := spec["mountOptions"].([]any)
	for _, option := range options {
		text, _ := option.(string)
		if rest, found := strings.CutPrefix(strings.TrimLeft(text, "-"), "prefix"); found && rest != "" && strings.ContainsAny(rest[:1], " =") {
			prefix = strings.TrimSpace(rest[1:])
		}
	}
	f.add(prefix, "")
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
