package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
)

// The ids of findings. They are part of the contract: programs match on them.
const (
	idRivals          = "two-hpas-one-target"
	idNotReady        = "scaledobject-not-ready"
	idStale           = "hpa-edited-after-sync"
	idNoFallback      = "no-fallback"
	idFallbackOff     = "fallback-silently-off"
	idIdleFlaps       = "idle-flaps"
	idCooldown        = "cooldown-has-no-effect"
	idActivation      = "activation-has-no-effect"
	idEngineAtZero    = "engine-metrics-only-at-zero"
	idLatencyAveraged = "latency-averaged-over-replicas"
	idRatioAveraged   = "ratio-averaged-over-replicas"
	idAverageAveraged = "average-divided-again"
	idRunsAway        = "total-against-value-runs-away"
	idEmptyZero       = "empty-result-reads-as-zero"
	idWithinTolerance = "target-exceeded-within-tolerance"
	idUnreachable     = "threshold-unreachable"
	idKVEdges         = "kv-threshold-edges"
	idSeveralSeries   = "query-returns-several-series"
	idPodPattern      = "pod-pattern-too-wide"
	idCoarseBucket    = "quantile-in-coarse-bucket"
	idNoQueueTime     = "latency-excludes-queue-time"
	idSlow            = "reacts-slower-than-lead-time"
	idRefused         = "hpa-refused"
	idFailed          = "trigger-failed"
	idBrokenQuery     = "query-does-not-parse"
	idScalar          = "query-returns-scalar"
	idCountTolerance  = "last-replicas-within-tolerance"
)

// findings collects them.
type findings []record.Finding

func (f *findings) add(id, severity, trigger, fix, format string, args ...any) {
	*f = append(*f, record.Finding{ID: id, Severity: severity, Trigger: trigger, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// lint looks for what is likely not meant, with the numbers of these objects:
// errors first.
func lint(link chain.Chain, explained record.ScalingChain) []record.Finding {
	var found findings
	if len(link.Rivals) > 0 {
		var names []string
		for _, rival := range link.Rivals {
			names = append(names, kindText(rival.Kind)+" "+rival.Name)
		}
		scale := "scales"
		if len(names) > 1 {
			scale = "scale"
		}
		found.add(idRivals, record.SeverityError, "", "keep one: a ScaledObject may have several triggers",
			"%s %s the same workload: they stop, or fight", strings.Join(names, " and "), scale)
	}
	found.failed(link, explained)
	if link.ScaledObject != nil {
		found.scaledObject(*link.ScaledObject, explained)
		up, _ := tolerancesOf(link, explained)
		for _, trigger := range ownTriggers(*link.ScaledObject, explained) {
			rule := triggerRules{
				findings: &found, source: link.ScaledObject.Spec.Triggers[*trigger.Index], trigger: trigger,
				so: *link.ScaledObject, workload: link.Target, tolerance: up, up: upRules(link),
			}
			if size := explained.Replicas.Spec; size != nil {
				rule.size = *size
			}
			rule.all()
		}
	}
	slices.SortStableFunc(found, func(a, b record.Finding) int {
		// Findings of one kind stand together.
		return cmp.Or(cmp.Compare(severityRank(b.Severity), severityRank(a.Severity)), cmp.Compare(a.ID, b.ID))
	})
	return found
}

// ownTriggers are the triggers that the ScaledObject itself has. With
// scalingModifiers the HPA knows one composite metric instead of them.
func ownTriggers(so keda.ScaledObject, explained record.ScalingChain) []record.ScalingTrigger {
	if so.UsesModifiers() {
		return sourcesOf(so)
	}
	var own []record.ScalingTrigger
	for _, trigger := range explained.Triggers {
		if trigger.Index != nil {
			own = append(own, trigger)
		}
	}
	return own
}

// tolerancesOf are those of the decision, else those that the manifest asks
// for, else the controller's defaults.
func tolerancesOf(link chain.Chain, explained record.ScalingChain) (up, down float64) {
	if explained.Decision != nil {
		return explained.Decision.ToleranceUp, explained.Decision.ToleranceDown
	}
	if link.HPA == nil && link.ScaledObject != nil {
		planned := plannedHPA(link)
		return hpa.FromObject(planned, hpa.Range{}, hpa.Range{}, hpa.Version{}, time.Time{}).Tolerances()
	}
	return hpa.DefaultTolerance, hpa.DefaultTolerance
}
