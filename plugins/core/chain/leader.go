package chain

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// The Lease of kube-controller-manager, whose HPA controller keeps its memory
// in its process.
const (
	LeaderNamespace = "kube-system"
	LeaderName      = "kube-controller-manager"
)

// Leader is what the controller's Lease says.
type Leader struct {
	// Since is when the process took over: it remembers nothing older.
	Since time.Time
	// Renewed is when it last said that it is alive, for Lasts.
	Renewed time.Time
	Lasts   time.Duration
}

// late is how much later than its term a lease that is in use may have been
// renewed: the clocks of the reader and of the controller differ.
const late = time.Minute

// LeaderOf reads a Lease; nil where it does not say since when it is held.
func LeaderOf(lease *coordinationv1.Lease) *Leader {
	spec := lease.Spec
	if spec.AcquireTime == nil || spec.RenewTime == nil || spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return nil
	}
	leader := &Leader{Since: spec.AcquireTime.Time, Renewed: spec.RenewTime.Time, Lasts: 15 * time.Second}
	if spec.LeaseDurationSeconds != nil {
		leader.Lasts = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	return leader
}

// InUse says whether somebody held the lease at a moment. A controller that
// runs without leader election leaves an old lease as it was.
func (l *Leader) InUse(at time.Time) bool {
	return l != nil && at.Sub(l.Renewed).Abs() <= l.Lasts+late
}
