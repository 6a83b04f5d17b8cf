package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Owner is the object in which a ScaledObject's thresholds stay.
type Owner struct {
	Object record.TuningObject
	// Managed names the tool or object that would write over a change of
	// Object, "" where none is known.
	Managed string
	// KeepsMetricType is false where the object has no place for metricType.
	KeepsMetricType bool
	// locate finds a trigger of the ScaledObject in values, or says why it
	// is not there.
	locate func(trigger keda.Trigger, index int) (where pointers, why string)
	values map[string]any
}

// pointers are JSON Pointers to the fields of one trigger.
type pointers struct{ threshold, query, metricType string }

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
		locate: func(_ keda.Trigger, index int) (pointers, string) { return triggerAt("/spec/triggers", index), "" },
	}
}

func triggerAt(list string, index int) pointers {
	at := list + "/" + strconv.Itoa(index)
	return pointers{threshold: at + "/metadata/threshold", query: at + "/metadata/query", metricType: at + "/metricType"}
}

// onInferenceService: class keda copies predictor.autoScaling.metrics to
// triggers, by way of a form that knows no metricType. It keeps their order, but
// not every metric becomes a trigger that has a query.
func onInferenceService(owner map[string]any) Owner {
	metrics, _ := at(owner, "spec", "predictor", "autoScaling", "metrics").([]any)
	return Owner{
		Object: refOf(owner), Managed: managedBy(owner), values: owner,
		locate: func(trigger keda.Trigger, index int) (pointers, string) {
			asks := func(metric any) bool { return text(metric, "external", "metric", "query") == trigger.Query() }
			if index >= len(metrics) || !asks(metrics[index]) {
				index = slices.IndexFunc(metrics, asks)
			}
			if index < 0 {
				return pointers{}, fmt.Sprintf("InferenceService %s has no metric with its query", text(owner, "metadata", "name"))
			}
			path := "/spec/predictor/autoScaling/metrics/" + strconv.Itoa(index) + "/external"
			return pointers{threshold: path + "/target/value", query: path + "/metric/query"}, ""
		},
	}
}

func onLLMInferenceService(owner map[string]any, workload string) (Owner, error) {
	name := text(owner, "metadata", "name")
	path := []string{"spec", "scaling"}
	if strings.HasSuffix(workload, "-prefill") || (workload != "" && workload == text(owner, "status", "workloads", "prefill", "name")) {
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
		locate: func(_ keda.Trigger, index int) (pointers, string) { return triggerAt(list, index), "" },
	}, nil
}
