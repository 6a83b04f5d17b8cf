package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/failure"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/keda"
	"github.com/kubectl-inference/kubectl-inference/plugins/term"
)

// renderKEDA writes what KEDA itself does, where it matters now: a pause, zero
// or an idle count, a cooldown, a fallback, modifiers.
func renderKEDA(text *strings.Builder, c record.ScalingChain) {
	if c.KEDA == nil {
		return
	}
	lines := kedaLines(c)
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(text, "\n%s\n", term.Bold("KEDA"))
	for _, line := range lines {
		fmt.Fprintf(text, "  %s\n", line)
	}
	if c.KEDA.VersionAssumed {
		fmt.Fprintf(text, "  %s\n", term.Faint("version        not known: by the rules of "+c.KEDA.Version))
	}
}

func kedaLines(c record.ScalingChain) []string {
	lines := append(pauseLines(c), loopLines(c)...)
	lines = append(lines, fallbackLines(c)...)
	if m := c.KEDA.Modifiers; m != nil {
		line := fmt.Sprintf("modifiers      %s, target %s (%s), active above %s", failure.Clean(m.Formula), failure.Clean(m.Target), failure.Clean(m.MetricType), number(m.ActivationTarget))
		lines = append(lines, line)
		if m.Problem != "" {
			lines = append(lines, "modifiers      refused: "+failure.Clean(m.Problem))
		}
	}
	return lines
}

func pauseLines(c record.ScalingChain) []string {
	pause := c.KEDA.Pause
	switch {
	case pause.All && pause.Replicas != nil:
		return []string{fmt.Sprintf("pause          at %d (paused-replicas)", *pause.Replicas)}
	case pause.All:
		return nil
	}
	var lines []string
	if pause.ScaleIn {
		lines = append(lines, "pause          paused-scale-in: metrics remove no replica, a lower maximum still does")
	}
	if pause.ScaleOut {
		lines = append(lines, "pause          paused-scale-out: metrics add no replica, a higher minimum still does")
	}
	return lines
}

// loopLines tell of the way to and from zero or the idle count.
func loopLines(c record.ScalingChain) []string {
	k := c.KEDA
	if k.Pause.All || c.Replicas.Spec == nil {
		return nil
	}
	var lines []string
	if k.Forced {
		lines = append(lines, "activation     forced by the annotation: never to zero")
	}
	turn := fmt.Sprintf("at its next turn, within %gs", k.PollingSeconds)
	if k.Next != nil {
		switch keda.StepReason(k.Next.Reason) {
		case keda.StepActivates:
			return append(lines, fmt.Sprintf("activation     active: %d -> %d %s", *c.Replicas.Spec, k.Next.To, turn))
		case keda.StepPausedOut:
			return append(lines, "activation     active, and paused-scale-out keeps the size")
		case keda.StepCoolsDown:
			return append(lines, fmt.Sprintf("cooldown       inactive: %d -> %d after %s", *c.Replicas.Spec, floorOf(c.Replicas), cooldownText(k)))
		case keda.StepPausedIn:
			return append(lines, "cooldown       inactive, and paused-scale-in keeps the size")
		case keda.StepDeactivates:
			return append(lines, fmt.Sprintf("cooldown       over: %d -> %d %s", *c.Replicas.Spec, k.Next.To, turn))
		case keda.StepRaises:
			return append(lines, fmt.Sprintf("minimum        %d -> %d %s", *c.Replicas.Spec, k.Next.To, turn))
		case keda.StepAwaitsFallback:
			return append(lines, "failure        a trigger fails and none is active: the size waits for the fallback")
		case keda.StepTriggerError:
			return append(lines, "failure        a trigger fails and none is active: KEDA's loop leaves the size")
		}
	}
	if below := *c.Replicas.Spec == 0 || c.Replicas.Idle != nil && c.Replicas.Min != nil && *c.Replicas.Spec < *c.Replicas.Min; below && !k.Forced {
		lines = append(lines, fmt.Sprintf("activation     to %d once %s, looked at every %gs", activatesTo(c), activationText(c), k.PollingSeconds))
	}
	return lines
}

// floorOf is the size that an inactive object goes to.
func floorOf(counts record.ReplicaCounts) int32 {
	switch {
	case counts.Idle != nil:
		return *counts.Idle
	case counts.Min != nil:
		return *counts.Min
	}
	return 0
}

func activatesTo(c record.ScalingChain) int32 {
	if c.Replicas.Min == nil {
		return 1
	}
	return max(*c.Replicas.Min, 1)
}

// cooldownText is the end of the cooldown and the setting it comes from.
func cooldownText(k *record.KEDALoop) string {
	setting, length := "cooldownPeriod", k.Cooldown.Seconds
	if k.Cooldown.LastActive == nil {
		setting, length = "initialCooldownPeriod", k.Cooldown.InitialSeconds
	}
	ends := clockText(*k.Next.NotBefore)
	if length >= 12*60*60 {
		ends = k.Next.NotBefore.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s (%s %ss)", ends, setting, number(length))
}

// activationText names the triggers with their activation thresholds.
func activationText(c record.ScalingChain) string {
	var parts []string
	for _, activation := range c.KEDA.Activations {
		parts = append(parts, fmt.Sprintf("%s is above %s", metricText(c, activation.Metric), number(activation.Threshold)))
	}
	if len(parts) == 0 {
		return "a trigger is active"
	}
	return strings.Join(parts, " or ")
}

// metricText is what a person calls a metric.
func metricText(c record.ScalingChain, metric string) string {
	for _, t := range c.Triggers {
		if t.Metric == metric {
			return failure.Clean(triggerName(t))
		}
	}
	return failure.Clean(metric)
}

// fallbackLines tell of a fallback that counts, is active, or does nothing.
func fallbackLines(c record.ScalingChain) []string {
	f := c.KEDA.Fallback
	if f == nil {
		return nil
	}
	var lines []string
	switch keda.FallbackProblem(f.Problem) {
	case keda.FallbackTargetNoInteger:
		lines = append(lines, "fallback       off: with scalingModifiers their target must be a whole number")
	case keda.FallbackValueUnsupported:
		lines = append(lines, "fallback       off for metricType Value before KEDA 2.18")
	case keda.FallbackNegative:
		lines = append(lines, "fallback       off: failureThreshold or replicas is negative")
	}
	if f.Active && c.KEDA.Modifiers != nil && f.Behavior != keda.FallbackScalingModifiers {
		lines = append(lines, "fallback       the formula is skipped while a trigger is in fallback")
	}
	for _, failed := range f.Failures {
		name := failure.Clean(failed.Metric)
		if failed.Label != "" {
			number, _, _ := strings.Cut(name, "-")
			name = number + " " + failure.Clean(failed.Label)
		}
		asks := "leaves it to the formula"
		if failed.AsksFor != nil {
			asks = fmt.Sprintf("asks for %d", *failed.AsksFor)
		}
		if failed.Off {
			lines = append(lines, fmt.Sprintf("fallback       %s failed %d times in a row; the fallback does nothing for it", name, failed.Count))
			continue
		}
		if failed.Active {
			lines = append(lines, fmt.Sprintf("fallback       active: %s failed %d times in a row; it %s (%s)", name, failed.Count, asks, f.Behavior))
			continue
		}
		lines = append(lines, fmt.Sprintf("fallback       %s failed %d of the %d times after which it %s", name, failed.Count, f.FailureThreshold+1, asks))
	}
	return lines
}
