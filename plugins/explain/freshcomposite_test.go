package explain

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/test/apiserver"
)

// formula gives a service the triggers queue and cache, and a formula.
func formula(text string, more ...map[string]any) func(map[string]any) {
	return func(spec map[string]any) {
		trigger := func(name, query string) map[string]any {
			return map[string]any{"type": "prometheus", "name": name, "metadata": map[string]any{
				"serverAddress": "http://prometheus.monitoring:9090", "query": query, "threshold": "1", "ignoreNullValues": "false",
			}}
		}
		triggers := []any{trigger("queue", "queue"), trigger("cache", "cache")}
		for _, one := range more {
			triggers = append(triggers, one)
		}
		spec["triggers"] = triggers
		spec["advanced"] = map[string]any{"scalingModifiers": map[string]any{"formula": text, "target": "2"}}
		delete(spec, "fallback")
	}
}

// TestFreshFormula: every trigger of the formula is read, and the composite
// value decides.
func TestFreshFormula(t *testing.T) {
	w := newWorld(t, "formulas", apiserver.Admin)
	values := map[string]string{}
	w.prometheus = func(out http.ResponseWriter, r *http.Request) {
		if value := values[r.URL.Query().Get("query")]; value != "" {
			fmt.Fprint(out, vector(value))
			return
		}
		fmt.Fprint(out, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}
	cron := map[string]any{"type": "cron", "name": "night", "metadata": map[string]any{"timezone": "UTC", "start": "0 0 * * *", "end": "0 6 * * *", "desiredReplicas": "1"}}
	for name, text := range map[string]string{"both": "queue + 10 * cache", "night": "queue + night", "without": "queue"} {
		s := steady(name, 0)
		s.metric = "composite-metric"
		if s.change = formula(text); name != "both" {
			s.change = formula(text, cron)
		}
		w.addAll(t, []service{s})
	}
	composite := func(name string) (record.FreshValue, *record.ScalingWhatIf) {
		now := w.explain(t, "so/"+name, "--fresh").Chains[0].Now
		return now.Values[len(now.Values)-1], now.Decision
	}
	values["queue"], values["cache"] = "3", "0.45"
	got, decision := composite("both")
	if got.Value == nil || *got.Value != 7.5 || got.Metric != "composite-metric" || got.Index != nil {
		t.Errorf("got %+v", got)
	}
	if decision == nil || decision.Triggers[0].Proposes.Low != 4 || decision.Triggers[0].Reason != "AboveTarget" {
		t.Errorf("got %+v", decision)
	}
	if got, decision := composite("night"); got.Value != nil || got.Error != "night could not be read" || decision != nil {
		t.Errorf("got %+v, %+v", got, decision)
	}
	if got, decision := composite("without"); got.Value == nil || *got.Value != 3 || !strings.HasPrefix(got.Note, "night could not be read") || decision == nil {
		t.Errorf("got %+v, %+v", got, decision)
	}
	// An empty result is an error to KEDA here: so is the composite, and the
	// size stays.
	values["cache"] = ""
	if got, decision := composite("both"); got.Value != nil || got.Error != "KEDA gives no composite value while one of its triggers fails" || decision == nil || decision.Decision.Blocking != "all_failed" {
		t.Errorf("got %+v, %+v", got, decision)
	}
}

// TestExternalMetrics: KEDA's own API is asked only with a flag, for triggers of
// any type, and it is said what that does.
func TestExternalMetrics(t *testing.T) {
	w := newWorld(t, "external", apiserver.Admin)
	asked := 0
	w.apis = map[string]http.HandlerFunc{"/apis/external.metrics.k8s.io/v1beta1/namespaces/external/s0-prometheus": func(out http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Query().Get("labelSelector") != "scaledobject.keda.sh/name=fine" {
			t.Errorf("request %s", r.URL)
		}
		fmt.Fprint(out, `{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","items":[{"metricName":"s0-prometheus","value":"9"}]}`)
	}}
	w.addAll(t, []service{steady("fine", 0)})
	w.explain(t, "so/fine", "--fresh")
	if asked != 0 {
		t.Error("--fresh is not passive")
	}
	now := w.explain(t, "so/fine", "--external-metrics").Chains[0].Now
	if len(now.Values) != 1 || now.Values[0].Value == nil || *now.Values[0].Value != 9 || now.Values[0].Via != groupExternal || asked != 1 || now.Decision.Triggers[0].Proposes.Low != 5 {
		t.Errorf("asked %d times, got %+v", asked, now)
	}
	stdout, _, err := w.run(t, "so/fine", "--external-metrics")
	if err != nil || !strings.Contains(stdout, "from external.metrics.k8s.io, which is not passive: KEDA asks its sources for it") {
		t.Errorf("got %v\n%s", err, stdout)
	}
	w.apis = nil
	if got := w.explain(t, "so/fine", "--external-metrics").Chains[0].Now.Values[0]; !strings.HasPrefix(got.Error, "cannot get s0-prometheus.external.metrics.k8s.io in external: ") {
		t.Errorf("got %+v", got)
	}
}
