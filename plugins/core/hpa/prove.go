package hpa

import "math"

// Proven are the steps of a decision as far as they are certain: the model's own
// bounds, narrowed by the size and the conditions that came of them.
type Proven struct {
	// Raw is the largest proposal, Stabilized the size after the windows.
	Raw, Stabilized Range
	// Up is the largest size that the policies of scaleUp allow, Down the
	// smallest that those of scaleDown allow.
	Up, Down Range
	// Proposals has one entry a metric.
	Proposals []Range
	// Able is what stabilization said, also where SucceededRescale was written
	// over it; "" where that is not certain.
	Able AbleReason
}

// stated are the model's own bounds.
func stated(d Decision) Proven {
	p := Proven{Raw: d.Raw, Stabilized: AnyCount(), Up: AnyCount(), Down: Range{math.MinInt32, math.MaxInt32}}
	if d.Stabilization != nil {
		p.Stabilized, p.Able = d.Stabilization.Count, d.Stabilization.Reason
	}
	if d.Limit != nil {
		p.Up, p.Down = d.Limit.Up, d.Limit.Down
	}
	for _, proposal := range d.Proposals {
		p.Proposals = append(p.Proposals, proposal.Count)
	}
	return p
}

// prove goes back from the size to what it must have come from: from the limits
// to the stabilized size, from there to the raw one, from that to the proposals.
// A status that nothing explains proves nothing: that is a disagreement.
func (c *Check) prove(d Decision, o Observed) {
	before := c.Proven
	if d.Blocking == MaybeBlocked {
		c.byFailures(d)
	}
	// A minimum that is made up for from zero hides what the limits said.
	if in := d.Input; in.Replicas.Spec != 0 || in.Min == 0 {
		c.byLimit(d.Input, o)
	}
	c.byStabilization(d.Input, AbleReason(o.Able))
	// What the raw size tells of the stabilized one may in turn tell of it.
	c.byStabilization(d.Input, AbleReason(o.Able))
	c.byWinner(d)
	if c.Raw.Low > c.Raw.High || c.Stabilized.Low > c.Stabilized.High || c.Up.Low > c.Up.High || c.Down.Low > c.Down.High {
		c.Proven = before
		if c.Agrees() {
			c.add("steps", "raw size "+before.Raw.String()+", stabilized "+before.Stabilized.String(), o.Able+", "+o.Limited+", size "+Exactly(o.Desired).String())
		}
		return
	}
	c.able(d.Input)
}

// byFailures: with failed metrics, scaling stops where the good ones ask for
// less than now, and only there.
func (c *Check) byFailures(d Decision) {
	if spec := d.Input.Replicas.Spec; c.Blocking == NotBlocked {
		c.Raw.Low = max(c.Raw.Low, spec)
	}
}

// byLimit: policies that allow less than the current size allow that.
func (c *Check) byLimit(in Input, o Observed) {
	spec, size := in.Replicas.Spec, o.Desired
	policies := in.Behavior != nil
	switch LimitReason(o.Limited) {
	case DesiredWithinRange:
		c.Stabilized = c.Stabilized.within(size, size)
		if size > spec || !policies {
			c.Up.Low = max(c.Up.Low, size)
		}
		if size < spec && policies {
			c.Down.High = min(c.Down.High, size)
		}
	case TooManyReplicas:
		c.Stabilized.Low = max(c.Stabilized.Low, above(size))
		if size > spec {
			c.Up.Low = max(c.Up.Low, size)
		}
	case ScaleUpLimit:
		c.Stabilized.Low = max(c.Stabilized.Low, above(size))
		c.Up.High = min(c.Up.High, size)
		if size > spec {
			c.Up.Low = max(c.Up.Low, size)
		}
	case TooFewReplicas:
		c.Stabilized.High = min(c.Stabilized.High, below(size))
		if policies && size < spec {
			c.Down.High = min(c.Down.High, size)
		}
	case ScaleDownLimit:
		c.Stabilized.High = min(c.Stabilized.High, below(size))
		c.Down.Low = max(c.Down.Low, size)
		if size < spec {
			c.Down.High = min(c.Down.High, size)
		}
	}
}

// byStabilization relates the raw size and the stabilized one. Without a
// behavior a window only raises; with one it moves the raw size towards the
// current one, or holds that.
func (c *Check) byStabilization(in Input, able AbleReason) {
	spec := in.Replicas.Spec
	switch {
	case able == ReadyForNewScale:
		c.Raw = c.Raw.within(c.Stabilized.Low, c.Stabilized.High)
		c.Stabilized = c.Raw
	case able == ScaleUpStabilized:
		c.Stabilized = c.Stabilized.within(spec, below(c.Raw.High))
		c.Raw.Low = max(c.Raw.Low, spec, above(c.Stabilized.Low))
	case able == ScaleDownStabilized:
		c.Stabilized.Low = max(c.Stabilized.Low, above(c.Raw.Low))
		c.Raw.High = min(c.Raw.High, below(c.Stabilized.High))
		if in.Behavior != nil {
			c.Stabilized.High = min(c.Stabilized.High, spec)
			c.Raw.High = min(c.Raw.High, below(spec))
		}
	case in.Behavior == nil:
		c.Stabilized.Low = max(c.Stabilized.Low, c.Raw.Low)
		c.Raw.High = min(c.Raw.High, c.Stabilized.High)
	default:
		if c.Stabilized.Low > spec {
			c.Raw.Low = max(c.Raw.Low, c.Stabilized.Low)
		}
		if c.Stabilized.High < spec {
			c.Raw.High = min(c.Raw.High, c.Stabilized.High)
		}
		// It lies between the raw size and the current one.
		c.Stabilized = c.Stabilized.within(min(c.Raw.Low, spec), max(c.Raw.High, spec))
	}
}

// byWinner: the winner's proposal is the raw size, and no other one is above it;
// of equal ones the first wins.
func (c *Check) byWinner(d Decision) {
	for i, p := range d.Proposals {
		if p.Reason == MetricFailed {
			continue
		}
		r := &c.Proposals[i]
		switch {
		case i == c.Winner && r.Low >= 0:
			*r = r.within(c.Raw.Low, c.Raw.High)
		case i < c.Winner && c.Raw.Low > 0:
			r.High = min(r.High, below(c.Raw.High))
		default:
			r.High = min(r.High, max(c.Raw.High, r.Low))
		}
		if r.Low > r.High {
			*r = p.Count
		}
	}
}

// able says what stabilization did, where the bounds tell.
func (c *Check) able(in Input) {
	apart := c.Raw.Low > c.Stabilized.High || c.Raw.High < c.Stabilized.Low
	switch {
	case c.Able != "":
	case c.Raw.Exact() && c.Raw == c.Stabilized:
		c.Able = ReadyForNewScale
	case apart && in.Behavior == nil, apart && c.Raw.High < in.Replicas.Spec:
		c.Able = ScaleDownStabilized
	case apart && c.Raw.Low >= in.Replicas.Spec:
		c.Able = ScaleUpStabilized
	}
}

// within is what both allow; its Low is above its High where that is nothing.
func (r Range) within(low, high int32) Range { return Range{max(r.Low, low), min(r.High, high)} }

func above(n int32) int32 { return clamp(int64(n) + 1) }

func below(n int32) int32 { return clamp(int64(n) - 1) }
