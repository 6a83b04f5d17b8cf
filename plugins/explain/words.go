package explain

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// inFormula is the value with as many digits as its share of the target needs to
// be seen: 30.001 / 5 rounds up to 7.
func inFormula(t record.ScalingTrigger) string {
	text := valueText(t)
	if t.Utilization != nil || t.ValueLow == nil || t.Target == 0 {
		return text
	}
	shown, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Ceil(shown/t.Target) == math.Ceil(*t.ValueHigh/t.Target) {
		return text
	}
	return number(*t.ValueHigh)
}

// number is a value for people: whole from 1000 on, else up to three decimals.
func number(value float64) string {
	if math.Abs(value) >= 1000 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	text := strconv.FormatFloat(value, 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// short is a value with three significant digits.
func short(value float64) string {
	digits := 2
	switch size := math.Abs(value); {
	case size >= 100:
		digits = 0
	case size >= 10:
		digits = 1
	case size < 0.1 && size > 0:
		digits = 3
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}

func triggerName(t record.ScalingTrigger) string {
	if t.Index == nil {
		return t.Label
	}
	return fmt.Sprintf("s%d %s", *t.Index, t.Label)
}

func valueText(t record.ScalingTrigger) string {
	switch {
	case t.Utilization != nil:
		return fmt.Sprintf("%d%%", *t.Utilization)
	case t.ValueLow == nil && t.AverageShown != nil:
		return short(*t.AverageShown)
	case t.ValueLow == nil:
		return "-"
	case short(*t.ValueLow) == short(*t.ValueHigh):
		return short(*t.ValueHigh)
	}
	// Only the average is shown, rounded up: the total is at most this.
	return "~" + short(*t.ValueHigh)
}

func targetText(t record.ScalingTrigger) string {
	switch kind := hpa.TargetType(t.TargetType); {
	case t.Target == 0:
		return "no number"
	case t.Target < 0:
		return "too large to count"
	case kind == hpa.Utilization && t.MetricType == string(hpa.External):
		return number(t.Target) + ", refused"
	case kind == hpa.Utilization:
		return number(t.Target) + "% of request"
	case kind == hpa.Value:
		return number(t.Target) + " in all"
	}
	return number(t.Target) + " per replica"
}

func rangeText(r *record.CountRange) string {
	switch {
	case r == nil:
		return "?"
	case r.High == nil:
		return fmt.Sprintf("%d or more", r.Low)
	case *r.High == r.Low:
		return strconv.Itoa(int(r.Low))
	}
	return fmt.Sprintf("%d-%d", r.Low, *r.High)
}

func exact(r *record.CountRange) (int32, bool) {
	if r == nil || r.High == nil || *r.High != r.Low {
		return 0, false
	}
	return r.Low, true
}

func ratioText(t record.ScalingTrigger) string {
	if t.Ratio == nil {
		return "?"
	}
	return fmt.Sprintf("%.2f", *t.Ratio)
}

// whyText says how a proposal came about, and what would change it.
func whyText(t record.ScalingTrigger, c record.ScalingChain) string {
	d, ready := c.Decision, c.Replicas.Ready
	switch hpa.ProposalReason(t.Reason) {
	case hpa.MetricFailed:
		return "failed: " + t.Failure
	case hpa.NotSeen:
		return "no value was seen"
	}
	if t.FromFallback {
		return "the value is the fallback's: it asks for " + rangeText(t.Proposes)
	}
	switch hpa.ProposalReason(t.Reason) {
	case hpa.NotModelled:
		return "not modelled: no API server accepts such a target"
	case hpa.PodsUnknown, hpa.PodsUncertain:
		return "ratio " + ratioText(t) + "; " + sampledText(t)
	case hpa.HeldByPods:
		return fmt.Sprintf("ratio %s; held: pods without a sample may use the rest", ratioText(t))
	case hpa.NoReplicas:
		if t.ValueLow == nil {
			line := "not known: status.replicas was 0, and the status shows an average of none"
			if t.Proposes != nil {
				line += "; the conditions tell what it asks for"
			}
			return line
		}
		return "there is no replica to take an average of"
	case hpa.WithinTolerance:
		tolerance := 0.0
		if d != nil {
			tolerance = d.ToleranceUp
			if t.Ratio != nil && *t.Ratio < 1 {
				tolerance = d.ToleranceDown
			}
		}
		ratio := 1.0
		if t.Ratio != nil {
			ratio = *t.Ratio
		}
		return fmt.Sprintf("ratio %.2f is within the %s%% tolerance%s", ratio, number(tolerance*100), edgeText(t, c))
	}
	if t.MetricType != string(hpa.External) && t.MetricType != string(hpa.Object) {
		return fmt.Sprintf("ceil(%s x pods with a sample)%s", ratioText(t), edgeText(t, c))
	}
	if t.TargetType == string(hpa.Value) {
		pods := "ready pods"
		if ready != nil {
			pods = fmt.Sprintf("%d ready", *ready)
		}
		return fmt.Sprintf("ceil(%s / %s x %s)%s", inFormula(t), number(t.Target), pods, edgeText(t, c))
	}
	return fmt.Sprintf("ceil(%s / %s)%s", inFormula(t), number(t.Target), edgeText(t, c))
}

// sampledText says what a metric of pods asks for, given what the status does not
// tell: which of the pods had a sample.
func sampledText(t record.ScalingTrigger) string {
	podsKnown := hpa.ProposalReason(t.Reason) == hpa.PodsUncertain
	unknown := "which pods had a sample is not known"
	if !podsKnown {
		unknown = "the pods of the sync and their samples are not known"
	}
	if t.IfSampled == nil {
		return unknown
	}
	size, known := exact(&t.IfSampled.Proposes)
	if proposed, sure := exact(t.Proposes); !known || (sure && proposed != size) {
		// Then some of them had none.
		return unknown
	}
	if !t.IfSampled.Plain {
		return fmt.Sprintf("%d if each of %s had a sample, and those that start use nothing", size, plural(t.IfSampled.Pods, "pod", "pods"))
	}
	formula := fmt.Sprintf("ceil(%s x %d) = %d if each of %s had a sample", ratioText(t), t.IfSampled.Pods, size, plural(t.IfSampled.Pods, "pod", "pods"))
	if podsKnown {
		return formula + ", which is not known"
	}
	return formula + "; " + unknown
}

// agoText is how long before the moment something was.
func agoText(at *time.Time, then time.Time) string {
	if at == nil {
		return "at " + then.UTC().Format(time.RFC3339)
	}
	switch d := at.Sub(then); {
	case d < 0:
		return "at " + then.UTC().Format(time.RFC3339)
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

// dateText is a moment of any day, in UTC.
func dateText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + "Z" }

func clockText(t time.Time) string { return t.UTC().Format("15:04:05") + "Z" }

// kindText spells the kinds that appear often as people say them.
func kindText(kind string) string {
	if kind == "HorizontalPodAutoscaler" {
		return "HPA"
	}
	return kind
}

func plural(n int32, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shortened is a text of at most size characters: messages of servers may hold
// whole queries.
func shortened(text string, size int) string {
	runes := []rune(text)
	if len(runes) <= size {
		return text
	}
	return string(runes[:size-3]) + "..."
}

// plainMetric leaves the selector of an external metric away, which the HPA
// writes as Go does.
func plainMetric(text string) string {
	return regexp.MustCompile(`[/(]*&LabelSelector\{.*?LabelSelectorRequirement\{[^}]*\},\}\)?|/nil|\(nil\)`).ReplaceAllString(text, "")
}
