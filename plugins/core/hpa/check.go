package hpa

import "slices"

// Disagreement is one point in which the model and the controller's status do
// not say the same: a defect of one of them, or a sign that something else
// changed the objects meanwhile.
type Disagreement struct {
	// What is "desired_replicas", "able_to_scale", "scaling_limited",
	// "scaling_active", "winner", or "steps" where no raw and stabilized size
	// within the model's bounds lead to what the controller wrote.
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
	// What the steps say, narrowed by what the conditions and the size prove.
	Proven
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
	c := Check{Proven: stated(d), Winner: d.Winner, Blocking: d.Blocking}
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
	c.prove(d, o)
}

func (c *Check) add(what, model, controller string) {
	c.Disagreements = append(c.Disagreements, Disagreement{what, model, controller})
}
