package hpa

// Narrowed is the decision with the number of replicas that divided the averages
// as far as the check proves it: within the tolerance a target per replica asks
// for just that number. All metrics of a sync have the same.
func (d Decision) Narrowed(c Check) Decision {
	if !c.Agrees() || len(c.Proposals) != len(d.Proposals) {
		return d
	}
	in := d.Input
	status := in.Replicas.Status
	for i, p := range d.Proposals {
		if !p.Metric.isPerReplica() || p.Reason != WithinTolerance {
			continue
		}
		both, ok := status.Intersect(c.Proposals[i])
		if !ok {
			return d
		}
		status = both
	}
	if status == in.Replicas.Status {
		return d
	}
	in.Replicas.Status = status
	return Decide(in)
}
