package explain

import (
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// Sources of a moment.
const (
	sourceCluster = "cluster"
	sourceObjects = "objects"
)

// moment is the time that is explained. The status that was read is that of
// the controller's last sync, at most one sync period before.
type moment struct {
	time   time.Time
	source string
	slack  time.Duration
	// since is when the controller took over, nil where that is unknown.
	since *time.Time
}

// remembering adds what the controller's lease says. One that nobody renews is
// of a controller that runs without.
func (in *inputs) remembering(leader *chain.Leader) {
	switch {
	case leader == nil:
	case leader.InUse(in.at.time):
		in.at.since = &leader.Since
	default:
		in.unread = append(in.unread, record.UnreadInput{
			Input: "lease", Verb: "get", Resource: "leases.coordination.k8s.io", Namespace: chain.LeaderNamespace,
			Message: "the lease " + chain.LeaderName + " in " + chain.LeaderNamespace + " is not in use (renewed " + leader.Renewed.UTC().Format(time.RFC3339) + "): since when the controller remembers is unknown",
		})
	}
}

// readSince is now, after reading that began earlier: the HPA that was read
// first may be as old as that. A busy controller looks a little later than it
// should.
func readSince(began, now time.Time, period time.Duration) moment {
	late := max(2*time.Second, period/5)
	return moment{time: now, source: sourceCluster, slack: period + late + now.Sub(began).Truncate(time.Millisecond)}
}

// savedAt takes the newest time that saved objects mention for the moment at
// which they were read.
func savedAt(objects chain.Objects, period time.Duration) moment {
	var newest time.Time
	see := func(t time.Time) {
		if t.After(newest) {
			newest = t
		}
	}
	for i := range objects.HPAs {
		see(hpa.ObservedIn(&objects.HPAs[i]).Newest())
		see(objects.HPAs[i].CreationTimestamp.Time)
	}
	for _, so := range objects.ScaledObjects {
		if so.Status.LastActiveTime != nil {
			see(*so.Status.LastActiveTime)
		}
	}
	for _, event := range objects.Events {
		see(eventTime(event))
	}
	for _, workload := range objects.Workloads {
		if workload.Writer != nil {
			see(workload.Writer.Time)
		}
	}
	return moment{time: newest, source: sourceObjects, slack: period}
}

func (m moment) record() record.ExplainedMoment {
	explained := record.ExplainedMoment{Source: m.source, SlackSeconds: m.slack.Seconds()}
	if !m.time.IsZero() {
		at := m.time.UTC()
		explained.Time = &at
	}
	return explained
}
