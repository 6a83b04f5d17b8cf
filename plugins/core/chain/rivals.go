package chain

// rivalsOf names what else scales the chain's workload: other HPAs, and other
// ScaledObjects as far as they have no HPA yet, as in manifests. A paused one
// scales nothing.
func (o Objects) rivalsOf(chain Chain) []Ref {
	if chain.HPA == nil && (chain.ScaledObject == nil || chain.ScaledObject.Pause().All) {
		return nil
	}
	var rivals []Ref
	for i := range o.HPAs {
		other := &o.HPAs[i]
		if targetOfHPA(other).same(chain.Target) && (chain.HPA == nil || !RefOfHPA(other).same(RefOfHPA(chain.HPA))) {
			rivals = append(rivals, RefOfHPA(other))
		}
	}
	for _, other := range o.ScaledObjects {
		ref := RefOfScaledObject(other)
		own := chain.ScaledObject != nil && ref.same(RefOfScaledObject(*chain.ScaledObject))
		// The search for its HPA comes last: there may be thousands.
		if !own && targetOfScaledObject(other).same(chain.Target) && !other.Pause().All && o.hpaOf(other) == nil {
			rivals = append(rivals, ref)
		}
	}
	return rivals
}
