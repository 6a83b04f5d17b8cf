package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/query"
)

const (
	// usualScrape is the scrape interval that is assumed: it is not in the
	// objects.
	usualScrape = 15 * time.Second
	// slowReaction is what is mentioned where no lead time is given.
	slowReaction = 2 * time.Minute
)

// bucketOf returns vLLM's histogram buckets around a value; known is false for
// other metrics and beyond the last bucket.
func bucketOf(expr string, value float64) (low, high float64, known bool) {
	requests := []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	var buckets []float64
	switch {
	case strings.Contains(expr, "vllm:time_to_first_token"):
		buckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	case strings.Contains(expr, "vllm:inter_token_latency"), strings.Contains(expr, "vllm:time_per_output_token"):
		buckets = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	case strings.Contains(expr, "vllm:e2e_request_latency"), strings.Contains(expr, "vllm:request_"):
		buckets = requests
	default:
		return 0, 0, false
	}
	at, exact := slices.BinarySearch(buckets, value)
	if exact || at == len(buckets) {
		return 0, 0, false
	}
	if at > 0 {
		low = buckets[at-1]
	}
	return low, buckets[at], true
}

// lintLead adds how long the slowest trigger may take from a rise of the load
// to the first new replica being asked for.
func lintLead(link chain.Chain, out *record.ScalingChain, lead, period time.Duration) {
	if link.ScaledObject == nil {
		return
	}
	window := upWindow(link)
	for i, trigger := range link.ScaledObject.Spec.Triggers {
		if trigger.Query() == "" {
			continue
		}
		parts := []string{fmt.Sprintf("%s stabilization", spanText(window)), fmt.Sprintf("%s query", spanText(query.Window(trigger.Query()))),
			fmt.Sprintf("%s scrape", spanText(usualScrape)), fmt.Sprintf("%s sync", spanText(period))}
		total := window + query.Window(trigger.Query()) + usualScrape + period
		if trigger.UseCachedMetrics {
			total += link.ScaledObject.PollingInterval()
			parts = append(parts, fmt.Sprintf("%s poll", spanText(link.ScaledObject.PollingInterval())))
		}
		finding := record.Finding{
			ID: idSlow, Severity: record.SeverityInfo, Trigger: trigger.MetricName(i), Fix: "a shorter window in behavior.scaleUp, or a shorter range in the query",
			Message: fmt.Sprintf("s%d %s may take %s to ask for a replica: %s", i, trigger.Label(), spanText(total), strings.Join(parts, " + ")),
		}
		switch {
		case lead > 0 && total > lead:
			finding.Severity = record.SeverityWarning
			finding.Message += fmt.Sprintf("; the lead time is %s", spanText(lead))
		case lead > 0 || total <= slowReaction:
			continue
		}
		out.Warnings = append(out.Warnings, finding)
	}
	slices.SortStableFunc(out.Warnings, func(a, b record.Finding) int { return severityRank(b.Severity) - severityRank(a.Severity) })
}

// upWindow is the stabilization window up: the HPA's, else what KEDA would copy.
func upWindow(link chain.Chain) time.Duration {
	var seconds *int32
	if link.HPA != nil {
		if b := link.HPA.Spec.Behavior; b != nil && b.ScaleUp != nil {
			seconds = b.ScaleUp.StabilizationWindowSeconds
		}
	} else if a := link.ScaledObject.Spec.Advanced; a != nil && a.HPA != nil && a.HPA.Behavior != nil && a.HPA.Behavior.ScaleUp != nil {
		seconds = a.HPA.Behavior.ScaleUp.StabilizationWindowSeconds
	}
	if seconds == nil {
		return 0
	}
	return time.Duration(*seconds) * time.Second
}
