package explain

import (
	"strconv"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// refused: what KEDA or the API server does not take. Then there is no HPA, and
// the ScaledObject's conditions are the only place that tells (kserve#4764).
func (f *findings) refused(so keda.ScaledObject) {
	if so.HPAMin() > so.Max() {
		f.add(idRefused, record.SeverityError, "", "maxReplicaCount: "+strconv.Itoa(int(so.HPAMin()))+" or more",
			"minReplicaCount %d is above maxReplicaCount %d", so.HPAMin(), so.Max())
	}
	if problem := so.ModifiersProblem(keda.Newest()); problem != "" {
		f.add(idRefused, record.SeverityError, "", "correct spec.advanced.scalingModifiers",
			"KEDA refuses the scalingModifiers: %s", problem)
	}
	for _, metric := range so.Metrics(keda.Newest()) {
		if metric.Trigger < 0 {
			continue
		}
		source := so.Spec.Triggers[metric.Trigger]
		name := "s" + strconv.Itoa(metric.Trigger) + " " + source.Label()
		switch {
		case metric.Source == keda.SourceExternal && metric.TargetType == keda.TargetUtilization:
			f.add(idRefused, record.SeverityError, metric.Name, "metricType: AverageValue or Value",
				"%s has metricType Utilization, which only cpu and memory may have", name)
		case metric.TargetMilli != nil && *metric.TargetMilli <= 0:
			text := source.Metadata["threshold"]
			if source.IsResource() {
				text = source.Metadata["value"]
			}
			f.add(idRefused, record.SeverityError, metric.Name, "a target of at least 0.001, or of 1%",
				"%s has the target %s, which is 0 in thousandths: an HPA's target must be above 0", name, text)
		}
	}
}
