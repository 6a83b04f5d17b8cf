package explain

import (
	"fmt"
	"strconv"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// freshSettings puts the fresh values, and the counts of now, in the place of
// what the last sync saw. What could not be read stays the sync's.
func freshSettings(fresh []freshSample, link chain.Chain) []setting {
	var settings []setting
	for _, one := range fresh {
		if one.metric < 0 || one.seen == nil {
			continue
		}
		settings = append(settings, setting{text: one.text(), field: "fresh", metric: one.metric, seen: one.seen})
	}
	if len(settings) > 0 && link.Workload != nil {
		counts := hpa.Replicas{Spec: link.Workload.Spec, Status: hpa.Exactly(link.Workload.Status), Ready: hpa.Range{High: link.Workload.Status}}
		switch {
		case link.Pods != nil:
			counts.Ready = hpa.Exactly(chain.Ready(link.Pods))
		case link.Workload.Ready != nil:
			counts.Ready = hpa.Exactly(*link.Workload.Ready)
		}
		settings = append(settings, setting{text: fmt.Sprintf("replicas=%d", counts.Spec), field: "now", counts: &counts})
	}
	return settings
}

// text is the change as --set would say it.
func (f freshSample) text() string {
	name := f.shown.Metric
	if f.shown.Index != nil {
		name = "s" + strconv.Itoa(*f.shown.Index)
	}
	switch {
	case f.seen.State == hpa.Failed:
		return name + ".value=failed"
	case f.seen.Samples != nil:
		return fmt.Sprintf("%s.value=%d samples", name, len(f.seen.Samples))
	}
	return name + ".value=" + strconv.FormatFloat(float64(*f.seen.Total)/1000, 'f', -1, 64)
}
