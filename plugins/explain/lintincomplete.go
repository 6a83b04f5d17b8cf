package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/query"
)

// incomplete: what KEDA's Prometheus scaler needs and a trigger lacks. KEDA
// makes no scaler of it, and no HPA of the ScaledObject.
func (f *findings) incomplete(so keda.ScaledObject) {
	if len(so.Spec.Triggers) == 0 {
		f.add(idRefused, record.SeverityError, "", "at least one trigger in spec.triggers", "there is no trigger: KEDA makes no HPA")
	}
	for i, source := range so.Spec.Triggers {
		if source.Type == "" {
			f.add(idRefused, record.SeverityError, "", "type: prometheus, or another scaler's", "s%d has no type", i)
		}
		if source.Type != "prometheus" {
			continue
		}
		name := fmt.Sprintf("s%d %s", i, source.Label())
		var missing []string
		for _, key := range []string{"serverAddress", "query", "threshold"} {
			if strings.TrimSpace(source.Metadata[key]) == "" {
				missing = append(missing, key)
			}
		}
		if len(missing) > 0 {
			f.add(idRefused, record.SeverityError, source.MetricName(i), "add it under the trigger's metadata",
				"%s has no %s, which KEDA needs", name, strings.Join(missing, " and no "))
		}
		for _, key := range []string{"threshold", "activationThreshold"} {
			text := source.Metadata[key]
			if _, err := strconv.ParseFloat(text, 64); text != "" && err != nil {
				f.add(idRefused, record.SeverityError, source.MetricName(i), key+`: "2", a number in quotes`, "%s has the %s %q, which is no number", name, key, text)
			}
		}
		if problem := query.Broken(source.Query()); problem != "" {
			f.add(idBrokenQuery, record.SeverityError, source.MetricName(i), "correct the query: Prometheus' own page /graph parses it",
				"%s has a query that no Prometheus can parse: %s", name, problem)
		}
	}
}
