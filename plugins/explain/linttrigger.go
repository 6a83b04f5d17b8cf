package explain

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/query"
)

// triggerRules are the rules about one trigger.
type triggerRules struct {
	*findings
	source    keda.Trigger
	trigger   record.ScalingTrigger
	so        keda.ScaledObject
	workload  chain.Ref
	tolerance float64
}

func (r triggerRules) all() {
	// With scalingModifiers a formula stands between a trigger's value and the
	// target: what its own threshold and metricType say has no effect.
	alone := !r.so.UsesModifiers()
	if r.source.Query() != "" && query.Broken(r.source.Query()) == "" {
		r.series()
		r.podPattern()
		r.emptyIsZero()
	}
	if r.source.Query() != "" && alone && query.Broken(r.source.Query()) == "" {
		r.averaging()
		r.coarseBucket()
	}
	if alone {
		r.edges()
		r.wantedCount()
	}
}

func (r triggerRules) note(id, severity, fix, format string, args ...any) {
	r.add(id, severity, r.trigger.Metric, fix, "%s %s", triggerName(r.trigger), fmt.Sprintf(format, args...))
}

func (r triggerRules) averaged() bool { return r.trigger.TargetType == string(hpa.AverageValue) }

// averaging: what the HPA does with the number of replicas must suit what the
// query measures. At most one of these is said.
func (r triggerRules) averaging() {
	expr, target := r.source.Query(), r.trigger.Target
	over, under, divided := query.Divided(expr)
	outer := query.Outer(expr)
	switch {
	case target <= 0:
		// No number was given, which is another finding.
	case !r.averaged():
		if r.trigger.TargetType == string(hpa.Value) && outer == "sum" && !isLatency(r.source) && !divided {
			r.note(idRunsAway, record.SeverityWarning, "metricType: AverageValue",
				"compares a total with %s whatever the size (metricType Value): above it each sync multiplies the Ready pods by value/%[1]s, up to the maximum %d unless the total falls", number(target), r.so.Max())
		}
	case isLatency(r.source) && target > 0:
		const replicas = 3
		value := target * 1.5
		r.note(idLatencyAveraged, record.SeverityWarning, "metricType: Value on this trigger, in the ScaledObject or in the object that owns it",
			"divides a latency by the replica count (metricType AverageValue): at %d replicas and %s it votes for %d", replicas, number(value), int(math.Ceil(value/target)))
	case divided && query.PerPod(under), outer == "avg":
		r.note(idAverageAveraged, record.SeverityWarning, "sum(...) in the query, or metricType: Value",
			"is an average already, and the HPA divides it by the replica count once more: at 4 replicas it acts above %s, not %s", number(4*target*(1+r.tolerance)), number(target*(1+r.tolerance)))
	case divided && query.Count(over) != query.Scalar && query.Count(under) != query.Scalar,
		(outer == "max" || outer == "min" || outer == "quantile") && isFraction(expr):
		r.note(idRatioAveraged, record.SeverityWarning, "metricType: Value",
			"divides a ratio by the replica count (metricType AverageValue): a ratio of %s at 4 replicas counts as %s and asks for %d", number(target*1.5), number(target*1.5/4), int(math.Ceil(1.5)))
	}
}

// isLatency says whether a query measures a time that replicas do not share:
// it is as long for each of them.
func isLatency(source keda.Trigger) bool {
	if _, quantile := source.Quantile(); quantile {
		return true
	}
	return strings.Contains(source.Query(), "_seconds_sum")
}

// wantedCount: a metric that is the wanted number of replicas itself (target 1
// for each) stops short of it, at the first size from which the rest is within
// the tolerance.
func (r triggerRules) wantedCount() {
	wanted, severity, when := int32(0), record.SeverityInfo, ""
	switch {
	case r.source.Type == "cron":
		n, err := strconv.ParseInt(r.source.Metadata["desiredReplicas"], 10, 32)
		if err != nil {
			return
		}
		wanted, severity = min(int32(n), r.so.Max()), record.SeverityWarning
	case r.averaged() && r.trigger.Target == 1 && strings.Contains(r.source.Query(), "desired_replicas"):
		wanted, when = r.so.Max(), "at its maximum "
	default:
		return
	}
	stops := wanted
	for stops > 1 && float64(wanted)/float64(stops-1) <= 1+r.tolerance {
		stops--
	}
	if stops >= wanted {
		return
	}
	r.note(idCountTolerance, severity, "behavior.scaleUp.tolerance: 0 (Kubernetes 1.35 on), or metricType: Value with the count as threshold",
		"%sasks for %d replicas and stops at %d on the way up: %d/%d = %s is within the tolerance of %s%%",
		when, wanted, stops, wanted, stops, number(float64(wanted)/float64(stops)), number(100*r.tolerance))
}

// isFraction says whether a metric lies between 0 and 1, or 100.
func isFraction(expr string) bool { return bound(expr) > 0 || strings.Contains(expr, "hit_rate") }

// bound is the largest value of a metric for one replica, 0 for none.
func bound(expr string) float64 {
	switch {
	case regexp.MustCompile(`kv_cache_usage|gpu_cache_usage|token_usage`).MatchString(expr):
		return 1
	case strings.Contains(expr, "DCGM_FI_DEV_GPU_UTIL"):
		return 100
	}
	return 0
}

func (r triggerRules) series() {
	expr := r.source.Query()
	if query.Count(expr) != query.Several {
		return
	}
	r.note(idSeveralSeries, record.SeverityWarning, "sum(...) around it, without by",
		"can return several series, one a pod: KEDA takes 0 or 1 and fails on more (\"returned multiple elements\")")
}

// podPattern: a prefix that was written for one workload matches its siblings.
func (r triggerRules) podPattern() {
	own := podOf(r.workload)
	for _, pattern := range query.Patterns(r.source.Query(), "pod") {
		matcher, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil || !matcher.MatchString(own) {
			continue
		}
		for _, sibling := range []string{"-prefill", "-canary"} {
			if pod := r.workload.Name + sibling + strings.TrimPrefix(own, r.workload.Name); matcher.MatchString(pod) {
				r.note(idPodPattern, record.SeverityInfo, patternFix(r.workload),
					"selects pod=~%q, which matches %s too: load of a workload named %s would be counted here", pattern, pod, r.workload.Name+sibling)
				break
			}
		}
	}
}

func (r triggerRules) coarseBucket() {
	if _, quantile := r.source.Quantile(); !quantile || r.trigger.Target <= 0 {
		return
	}
	low, high, known := bucketOf(r.source.Query(), r.trigger.Target)
	if width := high - low; known && width > r.trigger.Target/2 {
		r.note(idCoarseBucket, record.SeverityInfo, fmt.Sprintf("a threshold at an edge of vLLM's buckets: %s or %s", number(low), number(high)),
			"has its threshold %s between the buckets %s and %s: inside them a quantile is a straight line, wrong by up to %s (%.0f%% of the threshold)",
			number(r.trigger.Target), number(low), number(high), number(width), 100*width/r.trigger.Target)
	}
}

func (r triggerRules) emptyIsZero() {
	if !r.source.EmptyIsZero() || (r.trigger.ValueHigh != nil && *r.trigger.ValueHigh != 0) {
		return
	}
	reads := "would read 0 from an empty result,"
	if r.trigger.ValueHigh != nil {
		reads = "reads 0, as it does from an empty result,"
	}
	covered := ""
	if r.so.Spec.Fallback != nil {
		covered = fmt.Sprintf("; the fallback to %d replicas does not act on that", r.so.Spec.Fallback.Replicas)
	}
	r.note(idEmptyZero, record.SeverityInfo, `metadata.ignoreNullValues: "false", with a fallback`,
		"%s from NaN and from a series that does not exist%s", reads, covered)
}

// edges: where a threshold really acts, tolerance included.
func (r triggerRules) edges() {
	target, edge := r.trigger.Target, r.trigger.Target*(1+r.tolerance)
	top := bound(r.source.Query())
	perReplica := r.averaged() && query.Outer(r.source.Query()) == "sum"
	if top > 0 && target > 0 && edge >= top {
		r.note(idUnreachable, record.SeverityError, "a threshold below "+number(math.Floor(1000*top/(1+r.tolerance))/1000),
			"never adds a replica: it acts above %s x %s = %s, and one replica reports %s at most", number(target), number(1+r.tolerance), number(edge), number(top))
	} else if top == 1 && perReplica && target > 0 {
		r.note(idKVEdges, record.SeverityInfo, "a threshold lower by the tolerance, if "+number(target)+" was meant: "+number(math.Round(1000*target/(1+r.tolerance))/1000),
			"adds a replica above %s with 1, %s with 2, %s with 3 replicas: the threshold %s and the tolerance of %s%%",
			number(edge), number(2*edge), number(3*edge), number(target), number(100*r.tolerance))
	}
	if t := r.trigger; !t.FromFallback && t.Reason == string(hpa.WithinTolerance) && t.Ratio != nil && *t.Ratio >= 1 && t.AddsAt != nil {
		reached := "is above its target"
		if *t.Ratio == 1 {
			reached = "is at its target"
		}
		r.note(idWithinTolerance, record.SeverityInfo, "a threshold lower by the tolerance, if that was not meant",
			"%s and adds nothing: it acts above %s", reached, number(*t.AddsAt-0.001))
	}
}
