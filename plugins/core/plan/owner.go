package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Owner is the object in which a ScaledObject's thresholds stay.
type Owner struct {
	Object record.TuningObject
	// Managed names the tool outside the cluster's controllers that owns it.
	Managed string
	// KeepsMetricType is false where the object has no place for metricType.
	KeepsMetricType bool
	// path returns the JSON Pointer of a trigger, and of its threshold.
	locate func(trigger keda.Trigger, index int) (pointers, error)
	values map[string]any
}

type pointers struct{ trigger, threshold, query, metricType string }

// OwnerOf finds where the thresholds of a ScaledObject stay. owner is its
// controlling owner, nil where there is none; both are whole objects. An
// InferenceService or LLMInferenceService writes its own spec over a ScaledObject
// it made, so the change belongs there.
func OwnerOf(scaledObject, owner map[string]any) (Owner, error) {
	if owner == nil {
		return onScaledObject(scaledObject), nil
	}
	kind, name := text(owner, "kind"), text(owner, "metadata", "name")
	switch kind {
	case "InferenceService":
		return onInferenceService(owner), nil
	case "LLMInferenceService":
		return onLLMInferenceService(owner, text(scaledObject, "spec", "scaleTargetRef", "name"))
	}
	return Owner{}, failure.New(failure.Usage, "change the threshold on that object", "tune: %s %s owns the ScaledObject, and this tool does not know where it keeps thresholds", kind, name)
}

func onScaledObject(object map[string]any) Owner {
	return Owner{
		Object: refOf(object), Managed: managedBy(object), KeepsMetricType: true, values: object,
		locate: func(_ keda.Trigger, index int) (pointers, error) { return triggerAt("/spec/triggers", index), nil },
	}
}

func triggerAt(list string, index int) pointers {
	at := list + "/" + strconv.Itoa(index)
	return pointers{trigger: at, threshold: at + "/metadata/threshold", query: at + "/metadata/query", metricType: at + "/metricType"}
}

// onInferenceService: class keda copies predictor.autoScaling.metrics to
// triggers, by way of a form that knows no metricType.
func onInferenceService(owner map[string]any) Owner {
	return Owner{
		Object: refOf(owner), Managed: managedBy(owner), values: owner,
		locate: func(trigger keda.Trigger, _ int) (pointers, error) {
			metrics, _ := at(owner, "spec", "predictor", "autoScaling", "metrics").([]any)
			for i, entry := range metrics {
				metric, _ := entry.(map[string]any)
				if text(metric, "external", "metric", "query") == trigger.Query() {
					path := "/spec/predictor/autoScaling/metrics/" + strconv.Itoa(i)
					return pointers{trigger: path, threshold: path + "/external/target/value", query: path + "/external/metric/query"}, nil
				}
			}
			return pointers{}, failure.New(failure.Failed, "", "tune: InferenceService %s has no metric with the trigger's query", text(owner, "metadata", "name"))
		},
	}
}

func onLLMInferenceService(owner map[string]any, workload string) (Owner, error) {
	name := text(owner, "metadata", "name")
	path := []string{"spec", "scaling"}
	if workload != "" && workload == text(owner, "status", "workloads", "prefill", "name") || strings.HasSuffix(workload, "-prefill") {
		path = []string{"spec", "prefill", "scaling"}
	}
	if at(owner, append(path, "wva")...) != nil {
		return Owner{}, failure.New(failure.Usage, "the workload variant autoscaler decides by its own model; measured thresholds do not apply to it", "tune: LLMInferenceService %s scales by wva", name)
	}
	if at(owner, append(path, "keda", "triggers")...) == nil {
		return Owner{}, failure.New(failure.Usage, "change the LLMInferenceServiceConfig named in spec.baseRefs; it reaches all services that use it", "tune: LLMInferenceService %s inherits its triggers", name)
	}
	list := "/" + strings.Join(append(path, "keda", "triggers"), "/")
	return Owner{
		Object: refOf(owner), Managed: managedBy(owner), KeepsMetricType: true, values: owner,
		locate: func(_ keda.Trigger, index int) (pointers, error) { return triggerAt(list, index), nil },
	}, nil
}

// operations returns the patch of one change and its inverse. The test
// operations bind both to the very trigger that was looked at.
func (o Owner) operations(change record.TuningChange, trigger keda.Trigger) (patch, undo []record.PatchOperation, err error) {
	where, err := o.locate(trigger, change.Index)
	if err != nil {
		return nil, nil, err
	}
	live := at(o.values, strings.Split(strings.TrimPrefix(where.threshold, "/"), "/")...)
	test := func(path string, value any) record.PatchOperation {
		return record.PatchOperation{Op: "test", Path: path, Value: value}
	}
	replace := func(path string, value any) record.PatchOperation {
		return record.PatchOperation{Op: "replace", Path: path, Value: value}
	}
	patch = []record.PatchOperation{test(where.query, trigger.Query()), test(where.threshold, live), replace(where.threshold, change.To)}
	undo = []record.PatchOperation{test(where.query, trigger.Query()), test(where.threshold, change.To), replace(where.threshold, live)}
	if change.MetricType == change.PreviousMetricType {
		return patch, undo, nil
	}
	// "add" sets a member whether or not it is there.
	patch = append(patch, record.PatchOperation{Op: "add", Path: where.metricType, Value: change.MetricType})
	if trigger.MetricType == "" {
		undo = append(undo, record.PatchOperation{Op: "remove", Path: where.metricType})
	} else {
		undo = append(undo, replace(where.metricType, trigger.MetricType))
	}
	return patch, undo, nil
}

// managedBy names the tool whose marker on the object is about this very
// object: controllers copy their owner's markers to what they make.
func managedBy(object map[string]any) string {
	name, namespace := text(object, "metadata", "name"), text(object, "metadata", "namespace")
	labels, annotations := texts(object, "labels"), texts(object, "annotations")
	if id := annotations["argocd.argoproj.io/tracking-id"]; strings.HasSuffix(id, "/"+text(object, "kind")+":"+namespace+"/"+name) {
		application, _, _ := strings.Cut(id, ":")
		return "Argo CD application " + application
	}
	if owner := labels["kustomize.toolkit.fluxcd.io/name"]; owner != "" {
		return "Flux Kustomization " + owner
	}
	if owner := labels["helm.toolkit.fluxcd.io/name"]; owner != "" {
		return "Flux HelmRelease " + owner
	}
	if release := annotations["meta.helm.sh/release-name"]; release != "" && labels["app.kubernetes.io/managed-by"] == "Helm" {
		return "Helm release " + release
	}
	return ""
}

func refOf(object map[string]any) record.TuningObject {
	return record.TuningObject{APIVersion: text(object, "apiVersion"), Kind: text(object, "kind"), Namespace: text(object, "metadata", "namespace"), Name: text(object, "metadata", "name")}
}

func texts(object map[string]any, field string) map[string]string {
	values, _ := at(object, "metadata", field).(map[string]any)
	all := map[string]string{}
	for key, value := range values {
		all[key] = fmt.Sprint(value)
	}
	return all
}

func text(object map[string]any, path ...string) string {
	value, _ := at(object, path...).(string)
	return value
}

// at returns the value at path, nil where there is none. A number is an index.
func at(value any, path ...string) any {
	for _, key := range path {
		switch node := value.(type) {
		case map[string]any:
			value = node[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index < 0 || index >= len(node) {
				return nil
			}
			value = node[index]
		default:
			return nil
		}
	}
	return value
}
