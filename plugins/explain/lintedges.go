package explain

import (
	"math"
	"regexp"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/query"
)

const gpuUtilization = "DCGM_FI_DEV_GPU_UTIL"

// metricBounds are the values of one series of the metrics that are known.
func metricBounds(name string) (query.Bounds, bool) {
	switch {
	case cacheUsage(name), regexp.MustCompile(`^(vllm|sglang):\w*cache_hit_rate$`).MatchString(name):
		return query.Bounds{High: 1}, true
	case name == gpuUtilization:
		return query.Bounds{High: 100}, true
	}
	return query.Bounds{}, false
}

func cacheUsage(text string) bool {
	return regexp.MustCompile(`\b\w*(kv_cache_usage|gpu_cache_usage|token_usage)(_perc|_ratio)?\b`).MatchString(text)
}

// reach: whether a threshold can be reached at all, and where a cache
// threshold acts. It is silent where the query is more than it understands.
func (r triggerRules) reach() {
	target, edge := r.trigger.Target, r.trigger.Target*(1+r.tolerance)
	bounds, known := query.BoundsOf(r.source.Query(), metricBounds)
	switch {
	case !known, target <= 0, bounds.Summed && !r.averaged():
	case bounds.Summed && strings.Contains(r.source.Query(), gpuUtilization):
		// There is a series for each GPU, and a replica may have several.
	case edge >= bounds.High:
		most := "the query gives"
		if bounds.Summed {
			most = "one replica reports"
		}
		r.note(idUnreachable, record.SeverityError, "a threshold below "+number(math.Floor(1000*bounds.High/(1+r.tolerance))/1000),
			"never adds a replica: it acts above %s x %s = %s, and %s %s at most", number(target), number(1+r.tolerance), number(edge), most, number(bounds.High))
	case bounds.Summed && cacheUsage(r.source.Query()):
		r.note(idKVEdges, record.SeverityInfo, "a threshold lower by the tolerance, if "+number(target)+" was meant: "+number(math.Round(1000*target/(1+r.tolerance))/1000),
			"adds a replica above %s with 1, %s with 2, %s with 3 replicas: the threshold %s and the tolerance of %s%%",
			number(edge), number(2*edge), number(3*edge), number(target), number(100*r.tolerance))
	}
}

// edges: where a threshold really acts, tolerance included.
func (r triggerRules) edges() {
	r.reach()
	if t := r.trigger; !t.FromFallback && t.Reason == string(hpa.WithinTolerance) && t.Ratio != nil && *t.Ratio >= 1 && t.AddsAt != nil {
		reached := "is above its target"
		if *t.Ratio == 1 {
			reached = "is at its target"
		}
		r.note(idWithinTolerance, record.SeverityInfo, "a threshold lower by the tolerance, if that was not meant",
			"%s and adds nothing: it acts above %s", reached, number(*t.AddsAt-0.001))
	}
}
