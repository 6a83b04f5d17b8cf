package plan

import (
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// operations returns the patch of one change and its inverse, or why the owner
// has no place for it. The test operations bind both to the very trigger that
// was looked at.
func (o Owner) operations(change record.TuningChange, trigger keda.Trigger) (patch, undo []record.PatchOperation, why string) {
	where, why := o.locate(trigger, change.Index)
	if why != "" {
		return nil, nil, why
	}
	live := o.at(where.threshold)
	if live == nil {
		return nil, nil, "it has no threshold on " + o.Object.Kind + " " + o.Object.Name
	}
	patch = []record.PatchOperation{operation("test", where.query, trigger.Query()), operation("test", where.threshold, live), operation("replace", where.threshold, change.To)}
	undo = []record.PatchOperation{operation("test", where.query, trigger.Query()), operation("test", where.threshold, change.To), operation("replace", where.threshold, live)}
	if change.MetricType == change.PreviousMetricType {
		return patch, undo, ""
	}
	if before := o.at(where.metricType); before != nil {
		patch = append(patch, operation("test", where.metricType, before), operation("replace", where.metricType, change.MetricType))
		undo = append(undo, operation("test", where.metricType, change.MetricType), operation("replace", where.metricType, before))
		return patch, undo, ""
	}
	patch = append(patch, operation("add", where.metricType, change.MetricType))
	undo = append(undo, operation("test", where.metricType, change.MetricType), record.PatchOperation{Op: "remove", Path: where.metricType})
	return patch, undo, ""
}

func operation(op, path string, value any) record.PatchOperation {
	return record.PatchOperation{Op: op, Path: path, Value: value}
}

// at returns the owner's value at a JSON Pointer. None of its keys holds a
// character that a pointer escapes.
func (o Owner) at(pointer string) any {
	return at(o.values, strings.Split(strings.TrimPrefix(pointer, "/"), "/")...)
}
