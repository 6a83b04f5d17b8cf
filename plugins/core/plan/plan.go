// Package plan makes proposals as values: which fields of which object change,
// from what to what, on what evidence, and how to take it back.
package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// Input is what a plan is made from.
type Input struct {
	ScaledObject keda.ScaledObject
	// Owner is the object that keeps the thresholds.
	Owner Owner
	// Envelope is the evidence; Shape chooses one of its shapes, as in
	// "1024/128", "" where it has only one.
	Envelope record.CapacityEnvelope
	Shape    string
}

// Make proposes thresholds for the triggers of a ScaledObject that the envelope
// has evidence for. A trigger without evidence stays as it is, with a reason.
func Make(in Input) (record.TuningPlan, error) {
	shape, err := choose(in.Envelope, in.Shape)
	if err != nil {
		return record.TuningPlan{}, err
	}
	plan := record.TuningPlan{
		TypeMeta:     record.Meta(record.KindTuningPlan),
		Owner:        in.Owner.Object,
		ScaledObject: record.TuningObject{APIVersion: "keda.sh/v1alpha1", Kind: "ScaledObject", Namespace: in.ScaledObject.Metadata.Namespace, Name: in.ScaledObject.Metadata.Name},
		Managed:      in.Owner.Managed,
		Model:        in.Envelope.Model, Shape: shapeName(shape), Runs: []string{},
		Changes: []record.TuningChange{}, Kept: []record.TuningKept{},
		Patch: []record.PatchOperation{}, Undo: []record.PatchOperation{},
	}
	for _, run := range in.Envelope.Runs {
		plan.Runs = append(plan.Runs, run.Run)
	}
	for i, trigger := range in.ScaledObject.Spec.Triggers {
		change, why := propose(i, trigger, shape, in.Envelope.Tolerance)
		if in.ScaledObject.Composite() {
			why = "scalingModifiers join the triggers, and the formula's own target decides"
		}
		if why == "" && change.MetricType != change.PreviousMetricType && !in.Owner.KeepsMetricType {
			why = fmt.Sprintf("it needs metricType %s, which %s %s cannot say", change.MetricType, in.Owner.Object.Kind, in.Owner.Object.Name)
		}
		var patch, undo []record.PatchOperation
		if why == "" {
			patch, undo, why = in.Owner.operations(change, trigger)
		}
		if why != "" {
			plan.Kept = append(plan.Kept, record.TuningKept{Index: i, Trigger: trigger.Label(), Why: why})
			continue
		}
		plan.Changes = append(plan.Changes, change)
		plan.Patch = append(plan.Patch, patch...)
		plan.Undo = append(plan.Undo, undo...)
	}
	return plan, nil
}

func choose(envelope record.CapacityEnvelope, name string) (record.ShapeEnvelope, error) {
	var names []string
	for _, shape := range envelope.Shapes {
		if name == shapeName(shape) || (name == "" && len(envelope.Shapes) == 1) {
			return shape, nil
		}
		names = append(names, shapeName(shape))
	}
	return record.ShapeEnvelope{}, failure.New(failure.Usage, "choose with --shape: "+strings.Join(names, ", "), "choose shape %q: the envelope has %d shapes", name, len(names))
}

func shapeName(shape record.ShapeEnvelope) string {
	return fmt.Sprintf("%d/%d", shape.PromptTokens, shape.OutputTokens)
}

// propose returns the change of one trigger, or why there is none.
func propose(index int, trigger keda.Trigger, shape record.ShapeEnvelope, tolerance float64) (record.TuningChange, string) {
	signal, why := Signal(trigger)
	if why != "" {
		return record.TuningChange{}, why
	}
	threshold := find(shape.Thresholds, signal)
	switch {
	case threshold == nil:
		return record.TuningChange{}, fmt.Sprintf("the envelope says nothing about %s", signal)
	case threshold.Withheld != nil:
		return record.TuningChange{}, "no threshold is advised: " + threshold.Withheld.Message
	case threshold.Threshold == nil:
		return record.TuningChange{}, fmt.Sprintf("the envelope has no number for %s", signal)
	case !(*threshold.Threshold >= smallest):
		return record.TuningChange{}, fmt.Sprintf("the measured value is below %v, which KEDA reads as 0", smallest)
	}
	change := record.TuningChange{
		Index: index, Trigger: trigger.Label(), Signal: signal,
		From: trigger.Metadata["threshold"], To: Format(*threshold.Threshold),
		MetricType: threshold.MetricType, PreviousMetricType: orDefault(trigger.MetricType, record.MetricTypeAverageValue),
		Why: threshold.How, Evidence: threshold.Evidence,
	}
	to, err := strconv.ParseFloat(change.To, 64)
	if err != nil {
		return record.TuningChange{}, err.Error()
	}
	change.ActsAboveAfter = to * (1 + tolerance)
	// KEDA and the HPA see thousandths.
	from, known := trigger.Threshold()
	if !known {
		return change, ""
	}
	before := float64(from) / 1000 * (1 + tolerance)
	change.ActsAboveBefore = &before
	if from == keda.Milli(to) && change.MetricType == change.PreviousMetricType {
		return record.TuningChange{}, "it has the advised threshold already"
	}
	return change, ""
}

// smallest is the smallest threshold that KEDA does not round to 0, which the
// HPA refuses.
const smallest = 0.001

// Format writes a threshold with three significant digits, since the
// measurement carries no more, and no finer than the thousandths that KEDA
// hands to the HPA.
func Format(threshold float64) string {
	if threshold >= 0.1 {
		if value, err := strconv.ParseFloat(strconv.FormatFloat(threshold, 'g', 3, 64), 64); err == nil {
			threshold = value
		}
	}
	return strconv.FormatFloat(float64(keda.Milli(threshold))/1000, 'f', -1, 64)
}

func find(thresholds []record.Threshold, signal string) *record.Threshold {
	for i := range thresholds {
		if thresholds[i].Trigger == signal {
			return &thresholds[i]
		}
	}
	return nil
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
