package explain

import (
	"fmt"
	"math"
	"strings"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// byMetrics is the headline of a sync that got to the end, and its steps.
func byMetrics(c record.ScalingChain) (string, []string) {
	d := c.Decision
	goal := goalOf(c)
	desired, sure := exact(&d.Desired)
	if c.Check != nil && c.Check.Compared && c.Check.Agrees {
		desired, sure = c.Check.DesiredReplicas, true
	}
	steps := stepLines(d, goal.known && goal.size == d.From)
	switch {
	case d.Raw == nil && sure && desired == d.From:
		return fmt.Sprintf("stay at %d", d.From), append(steps, hiddenLine(d)...)
	case d.Raw == nil && sure:
		return fmt.Sprintf("%d -> %d", d.From, desired), append(steps, hiddenLine(d)...)
	case d.Raw == nil || !sure:
		return fmt.Sprintf("%d -> %s, bounds only", d.From, rangeText(&d.Desired)), append(steps, hiddenLine(d)...)
	case desired == d.From && goal.known && goal.size == d.From:
		return fmt.Sprintf("stay at %d%s", d.From, goal.clamped), steps
	case desired == d.From && stopped(c) != "":
		return fmt.Sprintf("stay at %d: %s, and the metrics ask for %s", d.From, stopped(c), rangeText(d.Raw)), steps
	case desired == d.From:
		return fmt.Sprintf("%d -> %s, waiting%s", d.From, goal.text, goal.clamped), steps
	case goal.known && goal.size == desired:
		return fmt.Sprintf("%d -> %d%s", d.From, desired, goal.clamped), steps
	case desired > d.From && mostOf(*d.Raw) < desired:
		return fmt.Sprintf("%d -> %d: a proposal of the window's; now the metrics ask for %s", d.From, desired, rangeText(d.Raw)), steps
	}
	return fmt.Sprintf("%d -> %s, now %d%s", d.From, goal.text, desired, goal.clamped), steps
}

// goal is the size that the metrics ask for, within the range.
type goal struct {
	size  int32
	known bool
	text  string
	// clamped says why it is not what they ask for.
	clamped string
}

func goalOf(c record.ScalingChain) goal {
	raw := c.Decision.Raw
	g := goal{text: rangeText(raw)}
	if raw == nil {
		return g
	}
	g.size, g.known = exact(raw)
	if top := c.Decision.Max; raw.Low > top {
		g.size, g.known = top, true
		g.clamped = fmt.Sprintf(": the metrics ask for %s, the maximum is %d", rangeText(raw), top)
	}
	if bottom := c.Decision.Min; mostOf(*raw) < bottom {
		g.size, g.known = bottom, true
		g.clamped = fmt.Sprintf(": the metrics ask for %s, the minimum is %d", rangeText(raw), g.size)
	}
	if g.known {
		g.text = fmt.Sprint(g.size)
	}
	return g
}

// mostOf is the upper bound of a count.
func mostOf(r record.CountRange) int32 {
	if r.High == nil {
		return math.MaxInt32
	}
	return *r.High
}

// stopped says what forbids the direction in which the metrics want to go; ""
// where nothing does.
func stopped(c record.ScalingChain) string {
	d := c.Decision
	if d.RateLimit == nil || d.RateLimit.Policy != policyDisabled {
		return ""
	}
	switch up := d.Raw.Low > d.From; {
	case up && c.KEDA != nil && c.KEDA.Pause.ScaleOut:
		return "scaling out is paused (paused-scale-out)"
	case up:
		return "the behavior disables scaleUp"
	case c.KEDA != nil && c.KEDA.Pause.ScaleIn:
		return "scaling in is paused (paused-scale-in)"
	}
	return "the behavior disables scaleDown"
}

func hiddenLine(d *record.ScalingDecision) []string {
	if len(d.HiddenInputs) == 0 {
		return nil
	}
	return []string{"hidden         " + strings.Join(d.HiddenInputs, "; ")}
}

// stepLines tells of stabilization and limits as far as they matter.
func stepLines(d *record.ScalingDecision, quiet bool) []string {
	lines := windowLines(d)
	switch r := d.RateLimit; {
	case r == nil || quiet:
	case hpa.LimitReason(r.Reason) == hpa.TooManyReplicas:
		// The headline names the maximum, where the metrics are sure to ask for
		// more.
	case r.Allows != nil && r.Policy != policyDisabled:
		lines = append(lines, fmt.Sprintf("rate limit     %s allows %s", r.Policy, rangeText(r.Allows)))
	}
	if len(lines) > 0 {
		for _, assumption := range d.Assumes {
			lines = append(lines, "assumes        "+assumption)
		}
	}
	return lines
}

// windowLines tell of a window that changed the size, or that may have.
func windowLines(d *record.ScalingDecision) []string {
	s := d.Stabilization
	if s == nil {
		return nil
	}
	if s.Applied == nil {
		raw := record.CountRange{}
		if d.Raw != nil {
			raw = *d.Raw
		}
		if raw.Low >= s.Result.Low && mostOf(raw) <= mostOf(s.Result) {
			return nil
		}
		return []string{fmt.Sprintf("stabilization  the metrics or a window's proposals lead to %s: the status does not tell which", rangeText(&s.Result))}
	}
	release := ""
	if s.ReleasedBy != nil {
		release = ", until " + clockText(*s.ReleasedBy) + " at the latest"
	}
	switch hpa.AbleReason(s.Reason) {
	case hpa.ScaleUpStabilized:
		return []string{fmt.Sprintf("stabilization  scale-up window %gs: its lowest proposal is %s%s", s.UpWindowSeconds, heldText(d, "or less"), release)}
	case hpa.ScaleDownStabilized:
		return []string{fmt.Sprintf("stabilization  scale-down window %gs: its highest proposal is %s%s", s.DownWindowSeconds, heldText(d, "or more"), release)}
	}
	return nil
}
