package explain

import (
	"io"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/output"
)

// rules documents every finding: its id, the severities that it may have, and
// what it means. --list-rules prints it.
func rules() []record.ScalingRule {
	const e, w, i = record.SeverityError, record.SeverityWarning, record.SeverityInfo
	rule := func(id, meaning string, severities ...string) record.ScalingRule {
		return record.ScalingRule{ID: id, Meaning: meaning, Severities: severities}
	}
	live := func(r record.ScalingRule) record.ScalingRule {
		r.Live = true
		return r
	}
	return []record.ScalingRule{
		rule(idRivals, "two HPAs or ScaledObjects have one target: they stop, or fight", e),
		rule(idRefused, "the HPA that KEDA would make of the ScaledObject is refused, so that nothing scales", e),
		live(rule(idNotReady, "KEDA reports the ScaledObject as not ready", e)),
		live(rule(idFailed, "a trigger failed; the message is the HPA's and KEDA's own", e, w)),
		rule(idBrokenQuery, "brackets or quotes of the query do not match: no Prometheus can parse it", e),
		rule(idScalar, "the query returns a scalar, which KEDA cannot decode: the trigger always fails", e),
		rule(idFallbackOff, "a fallback is written down and can never act", e, w),
		rule(idIdleFlaps, "an idle count above 0 makes the size flap, or one that is not below the minimum is refused", e),
		rule(idEngineAtZero, "at 0 replicas every trigger reads a metric that only a running engine reports: nothing brings it back", e),
		rule(idUnreachable, "no value that the metric can have is above the threshold and its tolerance", e),
		rule(idLatencyAveraged, "a latency is divided by the replica count, though each replica has all of it", w),
		rule(idRatioAveraged, "a ratio is divided by the replica count", w),
		rule(idAverageAveraged, "a query that is an average already is divided by the replica count once more", w),
		rule(idRunsAway, "a total is compared with a target that does not grow with the replicas: it runs to the maximum", w),
		rule(idSeveralSeries, "the query can return several series, and KEDA fails on more than one", w),
		rule(idCountTolerance, "the last replicas of a wanted count lie within the tolerance: at some sizes they never come", w, i),
		rule(idNoQueueTime, "a latency that starts when a request is scheduled does not see the queue", w, i),
		rule(idPodPattern, "a pod pattern matches the pods of another workload too", w, i),
		rule(idSlow, "stabilization, query range, scrape and sync take longer than the lead time", w, i),
		rule(idNoFallback, "no fallback: a trigger that fails blocks every step down", w, i),
		rule(idKVEdges, "where a cache threshold really acts, tolerance included", i),
		live(rule(idWithinTolerance, "a value is at or above its target and adds nothing, as it is within the tolerance", i)),
		rule(idCoarseBucket, "a quantile is compared with a threshold inside a wide histogram bucket", i),
		rule(idEmptyZero, "an empty result of the query reads as a healthy 0", i),
		rule(idCooldown, "cooldownPeriod delays the step to 0 or to an idle count only, and there is none", i),
		rule(idActivation, "activationThreshold decides about 0 replicas only, and the minimum is above that", i),
		live(rule(idStale, "the HPA was edited after the controller's last sync", i)),
	}
}

// listRules prints the catalogue.
func (o *options) listRules() error {
	document := record.ScalingRules{TypeMeta: record.Meta(record.KindScalingRules), Rules: rules()}
	return o.out.Print(o.streams.Out, document, func(w io.Writer) error { return renderRules(w, document, o.streams.Width()) })
}

func renderRules(w io.Writer, document record.ScalingRules, width int) error {
	table := output.Table{Header: []string{"SEVERITY", "ID", "MEANING"}}
	for _, rule := range document.Rules {
		table.Rows = append(table.Rows, []string{strings.Join(rule.Severities, ", "), rule.ID, rule.Meaning})
	}
	return writeFitted(w, table, "", width)
}
