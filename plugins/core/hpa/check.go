package hpa

import "slices"

// Disagreement is one point in which the model and the controller's status do
// not say the same: a defect of one of them, or a sign that something else
// changed the objects meanwhile.
type Disagreement struct {
	// What is "desired_replicas", "able_to_scale", "scaling_limited",
	// "scaling_active" or "winner".
	What              string
	Model, Controller string
}

// Check compares a Decision with what the controller wrote, and takes from the
// controller's conditions what its hidden memory must have said.
type Check struct {
	// Compared is false where the sync left nothing to compare with.
	Compared bool
	// Exact is true where the model arrived at one size, and at the same.
	Exact         bool
	Disagreements []Disagreement
	// Stabilized is the size after stabilization, narrowed by the conditions.
	Stabilized Range
	// Raw is the raw size, narrowed by the conditions.
	Raw Range
	// Blocking is the decision's, settled by the controller where bounds left
	// it open.
	Blocking Blocking
	// Winner is the controller's own word where it left one, else the model's.
	Winner int
}

// Agrees says whether nothing contradicts.
func (c Check) Agrees() bool { return len(c.Disagreements) == 0 }

// Compare checks d against the controller's status of the same sync.
func Compare(d Decision, o Observed) Check {
	c := Check{Raw: d.Raw, Winner: d.Winner, Blocking: d.Blocking, Stabilized: AnyCount()}
	if d.Stabilization != nil {
		c.Stabilized = d.Stabilization.Count
	}
	if !o.Synced || !o.AbleTrue {
		return c
	}
	c.Compared = true
	if c.Blocking == MaybeBlocked && o.Active != "" {
		c.Blocking = DownBlocked
		if o.ActiveTrue {
			c.Blocking = NotBlocked
		}
	}
	stopped := d.Path == ByMetrics && (c.Blocking == AllFailed || c.Blocking == DownBlocked)
	switch {
	case stopped && (o.ActiveTrue || (d.Active != "" && string(d.Active) != o.Active)):
		c.add("scaling_active", string(d.Active), o.Active)
	case stopped:
		// Nothing was computed; desiredReplicas is left from an earlier sync.
		c.Exact = true
		return c
	case !o.ActiveTrue && o.Active != "" && d.Path == ByMetrics && d.Active == ValidMetricFound:
		c.add("scaling_active", string(d.Active), o.Active)
		return c
	case !d.Desired.Contains(o.Desired):
		c.add("desired_replicas", d.Desired.String(), Exactly(o.Desired).String())
	}
	c.Exact = d.Desired == Exactly(o.Desired)
	if d.Path == ByMetrics && d.Stabilization != nil {
		c.conditions(d, o)
	}
	return c
}

func (c *Check) conditions(d Decision, o Observed) {
	if named := o.winners(d.Input.Metrics); len(named) > 0 {
		if d.Winner != NoWinner && !slices.Contains(named, d.Winner) {
			c.add("winner", d.Input.Metrics[d.Winner].Name, d.Input.Metrics[named[0]].Name)
		}
		if d.Winner == NoWinner || !slices.Contains(named, d.Winner) {
			c.Winner = o.Winner(d.Input.Metrics)
		}
	}
	// A rescale writes SucceededRescale over what stabilization said.
	able := AbleReason(o.Able)
	if d.Stabilization.Reason != "" && able != SucceededRescale && able != SucceededGetScale && d.Stabilization.Reason != able {
		c.add("able_to_scale", string(d.Stabilization.Reason), o.Able)
	}
	if d.Limit.Reason != "" && o.Limited != "" && d.Limit.Reason != LimitReason(o.Limited) {
		c.add("scaling_limited", string(d.Limit.Reason), o.Limited)
	}
	c.narrow(d, o)
}

// narrow uses what each condition proves. ReadyForNewScale: stabilization
// changed nothing. DesiredWithinRange: the limits changed nothing.
func (c *Check) narrow(d Decision, o Observed) {
	spec := d.Input.Replicas.Spec
	bound := AnyCount()
	switch LimitReason(o.Limited) {
	case DesiredWithinRange:
		bound = Exactly(o.Desired)
	case ScaleUpLimit, TooManyReplicas:
		bound.Low = clamp(int64(o.Desired) + 1)
	case ScaleDownLimit, TooFewReplicas:
		bound.High = clamp(int64(o.Desired) - 1)
	}
	if both, ok := c.Stabilized.Intersect(bound); ok {
		c.Stabilized = both
	}
	switch AbleReason(o.Able) {
	case ReadyForNewScale:
		if both, ok := c.Stabilized.Intersect(c.Raw); ok {
			c.Stabilized, c.Raw = both, both
		}
	case ScaleUpStabilized:
		if both, ok := c.Stabilized.Intersect(Range{spec, clamp(int64(c.Raw.High) - 1)}); ok {
			c.Stabilized = both
		}
	case ScaleDownStabilized:
		bound := Range{clamp(int64(c.Raw.Low) + 1), AnyCount().High}
		if d.Input.Behavior != nil {
			bound.High = spec
		}
		if both, ok := c.Stabilized.Intersect(bound); ok {
			c.Stabilized = both
		}
	}
}

func (c *Check) add(what, model, controller string) {
	c.Disagreements = append(c.Disagreements, Disagreement{what, model, controller})
}
