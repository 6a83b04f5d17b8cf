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
		if (chain.HPA == nil || !RefOfHPA(other).same(RefOfHPA(chain.HPA))) && targetOfHPA(other).same(chain.Target) {
			rivals = append(rivals, RefOfHPA(other))
		}
	}
	for _, other := range o.ScaledObjects {
		ref := RefOfScaledObject(other)
		own := chain.ScaledObject != nil && ref.same(RefOfScaledObject(*chain.ScaledObject))
		if !own && !other.Pause().All && o.hpaOf(other) == nil && targetOfScaledObject(other).same(chain.Target) {
			rivals = append(rivals, ref)
		}
	}
	return rivals
}
