package explain

import (
	"strings"
	"testing"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const failedHPA = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: keda-hpa-chat, namespace: models}
spec:
  maxReplicas: 10
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat-predictor}
  metrics: [{type: External, external: {metric: {name: s0-prometheus}, target: {type: AverageValue, averageValue: "2"}}}]
status:
  currentReplicas: 2
  conditions:
  - {type: AbleToScale, status: "True", reason: SucceededGetScale}
  - {type: ScalingActive, status: "False", reason: FailedGetExternalMetric, message: "the HPA was unable to compute the replica count: unable to get external metric models/s0-prometheus/nil: unable to fetch metrics from external metrics API: rpc error: code = Unknown desc = error when getting metric values CAUSE"}
`

const failedEvent = `---
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: models}
involvedObject: {kind: ScaledObject, name: chat, namespace: models}
reason: KEDAScalerFailed
type: Warning
message: 'MESSAGE'
lastTimestamp: "2026-11-30T10:06:00Z"
`

// TestFailed: a trigger that failed says why, in the words of the HPA's
// condition and of KEDA's event, with a fix that fits.
func TestFailed(t *testing.T) {
	tests := map[string]struct{ condition, event, says, fix string }{
		"several series": {"prometheus query returned multiple elements", "", "s0 queue depth failed: prometheus query returned multiple elements", idSeveralSeries},
		"by KEDA's event": {"metric:s0-prometheus encountered error", "Get \"http://p:9090?query=a&key=SECRET\": dial tcp: lookup p on 10.96.0.10:53: no such host",
			"failed: Get \"http://p:9090\": dial tcp: lookup p", "check serverAddress"},
		"refused":        {"metric:s0-prometheus encountered error", "prometheus query api returned error. status: 401", "status: 401", "authenticationRef"},
		"both":           {"the server is currently unable to handle the request (get s0-prometheus.external.metrics.k8s.io)", "prometheus query api returned error. status: 500", "KEDA says prometheus query", "apiservices"},
		"something else": {"metric:s0-prometheus encountered error", "", "metric:s0-prometheus encountered error", "kubectl describe scaledobject chat"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			yaml := manifest(atLeast1, trigger(queue, "2", "")) + "---\n" + strings.ReplaceAll(failedHPA, "CAUSE", test.condition)
			if test.event != "" {
				yaml += strings.ReplaceAll(failedEvent, "MESSAGE", test.event)
			}
			var found []record.Finding
			for _, f := range allFindingsIn(t, yaml) {
				if f.ID == idFailed {
					found = append(found, f)
				}
			}
			if len(found) != 1 || !strings.Contains(found[0].Message, test.says) || !strings.Contains(found[0].Fix, test.fix) {
				t.Errorf("got %+v", found)
			}
		})
	}
}

func TestPlainMetric(t *testing.T) {
	const selector = "&LabelSelector{MatchLabels:map[string]string{scaledobject.keda.sh/name: idle,},MatchExpressions:[]LabelSelectorRequirement{},}"
	for text, want := range map[string]string{
		"external metric s0-prometheus(" + selector + ") above target": "external metric s0-prometheus above target",
		"unable to get external metric models/s0/" + selector + ": no": "unable to get external metric models/s0: no",
		"external metric s0-prometheus(nil) above target":              "external metric s0-prometheus above target",
		"New size: 3": "New size: 3",
	} {
		if got := plainMetric(text); got != want {
			t.Errorf("got %q", got)
		}
	}
}

// TestCauseIsShort: a message may hold a whole query.
func TestCauseIsShort(t *testing.T) {
	if got := causeIn("x metrics API: " + strings.Repeat("a ", 500)); len(got) != causeShown || !strings.HasSuffix(got, "...") {
		t.Errorf("got %q", got)
	}
}
