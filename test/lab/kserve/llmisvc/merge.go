package llmisvc

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kubectl-inference/kubectl-inference/test/lab/kserve/object"
)

// Presets are the configs in KServe's own namespace that every service inherits
// from first, by what the service has.
const (
	PresetSingle  = "kserve-config-llm-template"
	PresetDecode  = "kserve-config-llm-decode-template"
	PresetPrefill = "kserve-config-llm-prefill-template"
)

// PresetsOf returns the names of the presets of a service, in merge order.
func PresetsOf(live *unstructured.Unstructured) []string {
	if _, found, _ := unstructured.NestedMap(live.Object, "spec", "prefill"); found {
		return []string{PresetPrefill, PresetDecode}
	}
	return []string{PresetSingle}
}

// BaseRefs returns the names of the configs that a service inherits from, in
// merge order.
func BaseRefs(live *unstructured.Unstructured) []string {
	var spec struct {
		BaseRefs []struct {
			Name string `json:"name"`
		} `json:"baseRefs"`
	}
	if err := object.Decode(live.Object["spec"], &spec); err != nil {
		return nil
	}
	names := make([]string, 0, len(spec.BaseRefs))
	for _, ref := range spec.BaseRefs {
		names = append(names, ref.Name)
	}
	return names
}

// Merge returns specs laid over each other, the last on top. Pod specs merge as
// in a strategic merge patch, containers by name; maps merge by key; any other
// list is replaced as a whole. In particular a service which sets one trigger
// loses all the inherited ones, and the query that went with its threshold.
//
// Where a later spec chooses replicas, or another way of scaling, the earlier
// choice goes: they exclude each other.
func Merge(specs ...map[string]any) (map[string]any, error) {
	merged := map[string]any{}
	for _, spec := range specs {
		if err := overlay(merged, runtime.DeepCopyJSON(spec)); err != nil {
			return nil, err
		}
	}
	delete(merged, "baseRefs")
	return merged, nil
}

// overlay merges the part of a workload on top into the one below.
func overlay(below, top map[string]any) error {
	displace(below, top)
	for key, value := range top {
		over, isMap := value.(map[string]any)
		under, hasMap := below[key].(map[string]any)
		if !isMap || !hasMap {
			below[key] = value
			continue
		}
		switch key {
		case "template", "worker":
			pod, err := strategicpatch.StrategicMergeMapPatch(under, over, corev1.PodSpec{})
			if err != nil {
				return fmt.Errorf("merge %s: %w", key, err)
			}
			below[key] = map[string]any(pod)
		default:
			// prefill is a workload too, with a template of its own.
			if err := overlay(under, over); err != nil {
				return fmt.Errorf("merge %s: %w", key, err)
			}
		}
	}
	return nil
}

// exclusive are the fields of which only one may be set.
func exclusive() [][2]string {
	return [][2]string{{"replicas", "scaling"}, {"keda", "wva"}}
}

func displace(below, top map[string]any) {
	for _, pair := range exclusive() {
		for i, field := range pair {
			if _, chosen := top[field]; chosen {
				delete(below, pair[1-i])
			}
		}
	}
}
