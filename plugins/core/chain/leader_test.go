package chain

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLeader(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	held := func(change func(*coordinationv1.LeaseSpec)) *coordinationv1.Lease {
		acquired, renewed := metav1.NewMicroTime(start), metav1.NewMicroTime(start.Add(time.Hour))
		spec := coordinationv1.LeaseSpec{AcquireTime: &acquired, RenewTime: &renewed, HolderIdentity: new("a"), LeaseDurationSeconds: new(int32(15))}
		change(&spec)
		return &coordinationv1.Lease{Spec: spec}
	}
	read := start.Add(time.Hour)
	for name, test := range map[string]struct {
		lease *coordinationv1.Lease
		at    time.Time
		inUse bool
	}{
		"held":                          {held(func(*coordinationv1.LeaseSpec) {}), read, true},
		"renewed a term ago":            {held(func(*coordinationv1.LeaseSpec) {}), read.Add(15 * time.Second), true},
		"the reader's clock is behind":  {held(func(*coordinationv1.LeaseSpec) {}), read.Add(-30 * time.Second), true},
		"left behind: no election":      {held(func(*coordinationv1.LeaseSpec) {}), read.Add(2 * time.Minute), false},
		"released":                      {held(func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("") }), read, false},
		"never acquired":                {held(func(s *coordinationv1.LeaseSpec) { s.AcquireTime = nil }), read, false},
		"never renewed":                 {held(func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil }), read, false},
		"a longer term than the usual":  {held(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = new(int32(300)) }), read.Add(5 * time.Minute), true},
		"the usual term if none is set": {held(func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = nil }), read.Add(time.Minute), true},
	} {
		t.Run(name, func(t *testing.T) {
			leader := LeaderOf(test.lease)
			if got := leader.InUse(test.at); got != test.inUse {
				t.Errorf("in use: got %v", got)
			}
			if test.inUse && !leader.Since.Equal(start) {
				t.Errorf("since %v", leader.Since)
			}
		})
	}
}
