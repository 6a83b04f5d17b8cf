package explain

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/chain"
	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// Sources of a moment.
const (
	sourceCluster = "cluster"
	sourceObjects = "objects"
	// sourcePrometheus is what Prometheus scraped of a past moment.
	sourcePrometheus = "prometheus"
)

// moment is the time that is explained. The status that was read is that of
// the controller's last sync, at most one sync period before.
type moment struct {
	time   time.Time
	source string
	slack  time.Duration
	// since is when the controller took over, nil where that is unknown.
	since *time.Time
	// period is how often the controller looks; 0 is its default.
	period time.Duration
	// ahead is how far the API server's clock is ahead of this machine's.
	ahead time.Duration
	// past are statuses that were scraped, by namespace and name of the HPA.
	past map[string][]hpa.Past
	// taken are HPAs, named so too, of which the values are those that the
	// queries gave for the time, not those that the controller saw.
	taken map[string]bool
}

// clock is the time by the API server's clock, where that is known to differ.
func (o *options) clock() time.Time {
	ahead, _ := o.factory.Clock().Ahead()
	return o.now().Add(ahead)
}

// readSince is the moment of a reading that began at a time by the local clock.
// With a wrong one, the server's time is taken.
func (o *options) readSince(began time.Time) moment {
	ahead, unsure := o.factory.Clock().Ahead()
	at := readSince(began.Add(ahead), o.now().Add(ahead+unsure), o.syncPeriod)
	at.slack += unsure
	at.ahead = ahead
	return at
}

// warnOfClock says that the local clock is wrong, where it is.
func (o *options) warnOfClock(at moment) {
	if at.ahead.Abs() < tolerableClock {
		return
	}
	way := "behind"
	if at.ahead < 0 {
		way = "ahead of"
	}
	o.streams.Warn("this machine's clock is %v %s the API server's: the server's time is taken", at.ahead.Abs().Round(time.Second), way)
}

// tolerableClock is how wrong a clock may be without a word about it.
const tolerableClock = 2 * time.Second

// sync is how often the controller looks.
func (m moment) sync() time.Duration {
	if m.period > 0 {
		return m.period
	}
	return hpa.DefaultSyncPeriod
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
	return moment{time: now, source: sourceCluster, period: period, slack: period + late + now.Sub(began).Truncate(time.Millisecond)}
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
	if newest.IsZero() {
		// Pods alone do not tell when the HPA was read.
		return moment{source: sourceObjects, slack: period, period: period}
	}
	for i := range objects.Pods {
		see(newestOf(&objects.Pods[i]))
	}
	return moment{time: newest, source: sourceObjects, slack: period, period: period}
}

// newestOf is the newest time that a pod mentions.
func newestOf(pod *corev1.Pod) time.Time {
	newest := pod.CreationTimestamp.Time
	if started := pod.Status.StartTime; started != nil && started.After(newest) {
		newest = started.Time
	}
	for _, condition := range pod.Status.Conditions {
		if condition.LastTransitionTime.After(newest) {
			newest = condition.LastTransitionTime.Time
		}
	}
	return newest
}

func (m moment) record() record.ExplainedMoment {
	explained := record.ExplainedMoment{Source: m.source, SlackSeconds: m.slack.Seconds(), ClockSeconds: m.ahead.Round(time.Second).Seconds()}
	if !m.time.IsZero() {
		at := m.time.UTC()
		explained.Time = &at
	}
	return explained
}
