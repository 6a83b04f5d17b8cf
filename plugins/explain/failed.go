package explain

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// causeShown is how much of a cause is shown: it may hold a whole query.
const causeShown = 240

// failed tells why a trigger failed, in the words of the HPA's condition and of
// KEDA's events, with a fix that fits these.
func (f *findings) failed(link chain.Chain, explained record.ScalingChain) {
	failing := 0
	for _, t := range explained.Triggers {
		if t.Reason == string(hpa.MetricFailed) {
			failing++
		}
	}
	for _, t := range explained.Triggers {
		atKEDA := t.Failures != nil && *t.Failures > 0
		if t.Reason != string(hpa.MetricFailed) && !atKEDA {
			continue
		}
		var causes []string
		if t.Reason == string(hpa.MetricFailed) {
			causes = append(causes, hpaCause(link, t.Metric, failing == 1))
		}
		if t.Index != nil {
			if cause := kedaCause(link, t.Metric, failing <= 1); cause != "" {
				// What KEDA's metrics server tells the HPA is often that there was an error.
				causes = slices.DeleteFunc(causes, func(c string) bool { return strings.HasSuffix(c, "encountered error") || strings.Contains(c, cause) })
				causes = append(causes, cause)
			}
		}
		causes = slices.DeleteFunc(causes, func(cause string) bool { return cause == "" })
		if len(causes) == 0 {
			// There is nothing to tell beyond what WHY does.
			continue
		}
		severity, what := record.SeverityError, "failed"
		if t.Reason != string(hpa.MetricFailed) {
			severity, what = record.SeverityWarning, "fails at KEDA, whose fallback covers it or will"
		}
		f.add(idFailed, severity, t.Metric, failureFix(strings.Join(causes, " "), t, link), "%s %s: %s", triggerName(t), what, strings.Join(causes, "; KEDA says "))
	}
}

// hpaCause is what the HPA's condition, else its newest event, says of a metric.
func hpaCause(link chain.Chain, metric string, only bool) string {
	if link.HPA == nil {
		return ""
	}
	for _, condition := range link.HPA.Status.Conditions {
		if string(condition.Type) == "ScalingActive" && condition.Status == corev1.ConditionFalse && (only || strings.Contains(condition.Message, metric)) {
			if cause := causeIn(condition.Message); cause != "" {
				return cause
			}
		}
	}
	return newestWarning(link.Events, func(e corev1.Event) bool {
		return strings.HasPrefix(e.Reason, "FailedGet") && (only || strings.Contains(e.Message, metric))
	})
}

// kedaCause is the newest failure that KEDA tells of a ScaledObject. Its events
// do not always name the trigger.
func kedaCause(link chain.Chain, metric string, only bool) string {
	failed := func(e corev1.Event) bool {
		return (e.Reason == "KEDAScalerFailed" || e.Reason == "KEDAMetricSourceFailed") && e.InvolvedObject.Kind == "ScaledObject"
	}
	own := newestWarning(link.Related, func(e corev1.Event) bool { return failed(e) && strings.Contains(e.Message, metric) })
	any := newestWarning(link.Related, failed)
	if own == "" && any != "" && !only {
		return "of one of those that failed: " + any
	}
	return cmp.Or(own, any)
}

func newestWarning(events []corev1.Event, about func(corev1.Event) bool) string {
	var newest *corev1.Event
	for i := range events {
		if about(events[i]) && (newest == nil || eventTime(events[i]).After(eventTime(*newest))) {
			newest = &events[i]
		}
	}
	if newest == nil {
		return ""
	}
	return causeIn(newest.Message)
}

// causeIn is the innermost cause of an error that several programs have wrapped.
func causeIn(message string) string {
	for _, wrapping := range []string{
		"invalid metrics (", "unable to compute the replica count: ", "metrics API: ", "Internal error occurred: ", "code = Unknown desc = ", "error when getting metric values ",
	} {
		if at := strings.LastIndex(message, wrapping); at >= 0 {
			message = message[at+len(wrapping):]
		}
	}
	// A URL's query holds the whole PromQL, and may hold a key.
	message = regexp.MustCompile(`(https?://[^\s"?]*)\?[^\s"]*`).ReplaceAllString(message, "$1")
	return shortened(strings.Join(strings.Fields(plainMetric(message)), " "), causeShown)
}

// failureFix is the step that the words of an error ask for.
func failureFix(cause string, t record.ScalingTrigger, link chain.Chain) string {
	for _, known := range []struct {
		words []string
		fix   string
	}{
		{[]string{"multiple elements"}, "sum(...) around the query, without by: see " + idSeveralSeries},
		{[]string{"no such host", "lookup "}, "check serverAddress: the cluster's DNS does not know its host"},
		{[]string{"401", "403", "Unauthorized", "Forbidden", "forbidden"}, "check the trigger's authenticationRef: the server refuses its credentials"},
		{[]string{"x509", "certificate"}, "give the server's CA in the TriggerAuthentication"},
		{[]string{"parse error", "bad_data", "status: 400", "code: 400"}, "correct the query: Prometheus cannot parse it"},
		{[]string{"connection refused", "deadline exceeded", "Timeout", "timeout", "i/o"}, "check that the server at serverAddress runs and that KEDA's namespace may reach it"},
		{[]string{"result is empty", "may be lost"}, `check that the series exist, or metadata.ignoreNullValues: "true"`},
		{[]string{"missing request for"}, "resources.requests of it on every container of the pods"},
		{[]string{"metrics.k8s.io", "resource metrics"}, "`kubectl get apiservices` says whether the metrics API runs"},
	} {
		if slices.ContainsFunc(known.words, func(word string) bool { return strings.Contains(cause, word) }) {
			return known.fix
		}
	}
	if link.ScaledObject != nil {
		return "kubectl describe scaledobject " + link.ScaledObject.Metadata.Name + " and the log of keda-operator"
	}
	return "kubectl describe hpa " + cmp.Or(hpaName(link), t.Metric)
}

func hpaName(link chain.Chain) string {
	if link.HPA == nil {
		return ""
	}
	return link.HPA.Name
}
