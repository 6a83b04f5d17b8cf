package explain

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

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
	// up are the rules for steps up; size is the target's spec.replicas, 0 where
	// it is not known.
	up   *autoscalingv2.HPAScalingRules
	size int32
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
	expr := source.Query()
	if query.TimesPods(expr) {
		// Multiplied back, as AverageValue needs it.
		return false
	}
	if _, quantile := source.Quantile(); quantile {
		return true
	}
	// The rate of a latency's sum alone is the number of requests in flight, by
	// Little's law: replicas do share that. Divided by their rate it is a mean.
	return strings.Contains(expr, "_seconds_sum") && strings.Contains(expr, "_seconds_count")
}

// isFraction says whether a metric lies between 0 and 1, or 100.
func isFraction(expr string) bool {
	return regexp.MustCompile(`kv_cache_usage|gpu_cache_usage|token_usage|hit_rate|DCGM_FI_DEV_GPU_UTIL`).MatchString(expr)
}

func (r triggerRules) series() {
	expr := r.source.Query()
	switch query.Count(expr) {
	case query.Scalar:
		r.note(idScalar, record.SeverityError, "vector(...) around it, or the query without scalar(...)",
			"returns a scalar, which is no series: KEDA cannot decode Prometheus' answer, and the trigger always fails")
		return
	case query.Several:
	default:
		return
	}
	r.note(idSeveralSeries, record.SeverityWarning, "sum(...) around it, without by",
		"can return several series, one a pod: KEDA takes 0 or 1 and fails on more (\"returned multiple elements\")")
}

// podPattern: a prefix that was written for one workload matches its siblings.
func (r triggerRules) podPattern() {
	own := podOf(r.workload)
	for _, selection := range query.Selections(r.source.Query(), "pod") {
		r.supposedSiblings(selection, own)
	}
}

// supposedSiblings: where one of them is excluded, its author thought of what
// else there is.
func (r triggerRules) supposedSiblings(selection query.Selection, own string) {
	var taken []string
	for _, sibling := range []string{"-prefill", "-canary"} {
		pod := r.workload.Name + sibling + strings.TrimPrefix(own, r.workload.Name)
		if selection.Excludes(pod) {
			return
		}
		taken = append(taken, pod)
	}
	for _, pattern := range selection.Patterns {
		matcher, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil || !matcher.MatchString(own) {
			continue
		}
		if at := slices.IndexFunc(taken, matcher.MatchString); at >= 0 {
			r.note(idPodPattern, record.SeverityInfo, patternFix(r.workload),
				"selects pod=~%q, which matches %s too: load of a workload named %s would be counted here", pattern, taken[at], strings.TrimSuffix(taken[at], strings.TrimPrefix(own, r.workload.Name)))
		}
	}
}

func (r triggerRules) coarseBucket() {
	// A product with the replica count has the target of one replica.
	plain := !query.Arithmetic(r.source.Query()) || r.averaged() && query.TimesPods(r.source.Query())
	if _, quantile := r.source.Quantile(); !quantile || !plain || r.trigger.Target <= 0 {
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
	if r.trigger.ValueHigh != nil && !r.trigger.FromFallback {
		reads = "reads 0, as it does from an empty result,"
	}
	covered := ""
	if r.so.Spec.Fallback != nil {
		covered = fmt.Sprintf("; the fallback to %d replicas does not act on that", r.so.Spec.Fallback.Replicas)
	}
	r.note(idEmptyZero, record.SeverityInfo, `metadata.ignoreNullValues: "false", with a fallback`,
		"%s from NaN and from a series that does not exist%s", reads, covered)
}
