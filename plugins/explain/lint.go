package explain

import (
	"fmt"
	"math"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// The ids of findings.
const (
	idRivals          = "two-hpas-one-target"
	idNotReady        = "scaledobject-not-ready"
	idStale           = "hpa-edited-after-sync"
	idNoFallback      = "no-fallback"
	idLatencyAveraged = "latency-averaged-over-replicas"
	idAverageAveraged = "average-divided-again"
	idEmptyZero       = "empty-result-reads-as-zero"
	idWithinTolerance = "target-exceeded-within-tolerance"
)

// lint looks for what is likely not meant, with the numbers of these objects.
func lint(link chain.Chain, explained record.ScalingChain) []record.Finding {
	var findings []record.Finding
	if len(link.Rivals) > 0 {
		findings = append(findings, record.Finding{
			ID: idRivals, Severity: record.SeverityError,
			Message: fmt.Sprintf("HPA %s scales the same workload: both stop, or fight", link.Rivals[0].Name),
			Fix:     "delete one of them",
		})
	}
	if link.HPA != nil && stale(link) {
		findings = append(findings, record.Finding{
			ID: idStale, Severity: record.SeverityInfo,
			Message: "the HPA was edited after the controller's last sync, so its status is not compared",
			Fix:     "run this again in 15s",
		})
	}
	if link.ScaledObject == nil {
		return findings
	}
	findings = append(findings, lintScaledObject(*link.ScaledObject, explained)...)
	for _, trigger := range explained.Triggers {
		if trigger.Index != nil {
			findings = append(findings, lintTrigger(link.ScaledObject.Spec.Triggers[*trigger.Index], trigger)...)
		}
	}
	return findings
}

func lintScaledObject(so keda.ScaledObject, explained record.ScalingChain) []record.Finding {
	var findings []record.Finding
	if ready, known := so.Condition("Ready"); known && ready.Status != "True" {
		findings = append(findings, record.Finding{
			ID: idNotReady, Severity: record.SeverityError,
			Message: fmt.Sprintf("KEDA reports Ready=%s (%s): %s", ready.Status, ready.Reason, ready.Message),
			Fix:     "kubectl describe scaledobject " + so.Metadata.Name,
		})
	}
	if so.Spec.Fallback != nil {
		return findings
	}
	finding := record.Finding{
		ID: idNoFallback, Severity: record.SeverityInfo,
		Message: "no fallback: while a trigger fails no replica is removed, and while all fail none is added",
		Fix:     "spec.fallback: {failureThreshold: 3, replicas: N}",
	}
	external := false
	for _, trigger := range explained.Triggers {
		external = external || trigger.MetricType == string(hpa.External)
		if trigger.Reason == string(hpa.MetricFailed) {
			finding.Severity = record.SeverityWarning
		}
	}
	if external {
		findings = append(findings, finding)
	}
	return findings
}

func lintTrigger(source keda.Trigger, trigger record.ScalingTrigger) []record.Finding {
	var findings []record.Finding
	add := func(id, severity, message, fix string) {
		findings = append(findings, record.Finding{ID: id, Severity: severity, Trigger: trigger.Metric, Message: message, Fix: fix})
	}
	name := triggerName(trigger)
	averaged := trigger.TargetType == string(hpa.AverageValue)
	if isLatency(source) && averaged && trigger.Target > 0 {
		const replicas = 3
		value := trigger.Target * 1.5
		add(idLatencyAveraged, record.SeverityWarning,
			fmt.Sprintf("%s divides a latency by the replica count (metricType AverageValue): at %d replicas and %s it votes for %d",
				name, replicas, number(value), int(math.Ceil(value/trigger.Target))),
			"metricType: Value; `kubectl inference tune --help` makes the patch")
	}
	if query := strings.TrimSpace(source.Query()); averaged && (strings.HasPrefix(query, "avg(") || strings.HasPrefix(query, "avg by")) {
		add(idAverageAveraged, record.SeverityWarning,
			fmt.Sprintf("%s is an average already, and the HPA divides it by the replica count once more", name),
			"sum(...) in the query, or metricType: Value")
	}
	if trigger.ValueHigh != nil && *trigger.ValueHigh == 0 && source.Query() != "" && source.EmptyIsZero() {
		add(idEmptyZero, record.SeverityInfo,
			fmt.Sprintf("%s reads 0: an empty result, NaN and a series that does not exist read as 0 too", name),
			`metadata.ignoreNullValues: "false", with a fallback`)
	}
	if trigger.Reason == string(hpa.WithinTolerance) && trigger.Ratio != nil && *trigger.Ratio > 1 && trigger.AddsAt != nil {
		add(idWithinTolerance, record.SeverityInfo,
			fmt.Sprintf("%s is above its target and adds nothing: it acts above %s", name, number(*trigger.AddsAt-0.001)),
			"a threshold lower by the tolerance, if that was not meant")
	}
	return findings
}

// isLatency says whether a query measures a time that replicas do not share:
// it is as long for each of them.
func isLatency(source keda.Trigger) bool {
	if _, quantile := source.Quantile(); quantile {
		return true
	}
	return strings.Contains(source.Query(), "_seconds_sum")
}
