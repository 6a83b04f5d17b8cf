package capacity

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	// fallShare is how far below the best lower load a throughput must be to
	// count as falling, where no interval says it better.
	fallShare = 0.95
	// preemptionShare and errorShare are the shares of requests above which
	// preemptions and failures say that the load is too much.
	preemptionShare = 0.01
	errorShare      = 0.01
	// minScrapes is the number of moments below which a signal's mean is an
	// anecdote.
	minScrapes = 5
)

// The tests of a load, in the order in which they are named as a limit.
const (
	testErrors      = "errors"
	testThroughput  = "throughput"
	testPreemptions = "preemptions"
	testQueue       = "queue"
	testDrift       = "drift"
)

// saturate judges every level: over is a load that the replica does not
// sustain. Each sign is looked for; one that cannot be looked for is unknown.
func saturate(levels []level) {
	for i := range levels {
		tests := []record.SaturationTest{
			errorTest(levels[i]), throughputTest(levels[:i], levels[i]), preemptionTest(levels[i]), queueTest(levels[i]),
			{Name: testDrift, Result: record.TestUnknown, Detail: "in a closed loop the load waits for the server, so a backlog cannot grow"},
		}
		levels[i].Saturation.Tests = tests
		for _, test := range tests {
			levels[i].Saturation.Over = levels[i].Saturation.Over || test.Result == record.TestFailed
		}
	}
}

func verdict(name string, failed bool, format string, args ...any) record.SaturationTest {
	result := record.TestPassed
	if failed {
		result = record.TestFailed
	}
	return record.SaturationTest{Name: name, Result: result, Detail: fmt.Sprintf(format, args...)}
}

func unknown(name, detail string) record.SaturationTest {
	return record.SaturationTest{Name: name, Result: record.TestUnknown, Detail: detail}
}

func errorTest(l level) record.SaturationTest {
	started, failed := 0, 0
	for _, one := range l.cases {
		if one.report.Counts.Started == 0 {
			return unknown(testErrors, "the report does not say how many requests failed")
		}
		started += one.report.Counts.Started
		failed += one.report.Counts.Failed
	}
	return verdict(testErrors, float64(failed) > errorShare*float64(started), "%d of %d requests failed", failed, started)
}

func throughputTest(lower []level, l level) record.SaturationTest {
	if len(lower) == 0 {
		return unknown(testThroughput, "there is no lower load to compare with")
	}
	before := lower[0]
	for _, one := range lower {
		if one.RequestsPerSecond > before.RequestsPerSecond {
			before = one
		}
	}
	falls := l.RequestsPerSecond < fallShare*before.RequestsPerSecond
	if l.Interval != nil && l.Interval.High != nil {
		falls = falls && *l.Interval.High < before.RequestsPerSecond
	}
	return verdict(testThroughput, falls, "%s req/s after %s at %s",
		short(l.RequestsPerSecond), short(before.RequestsPerSecond), before.at())
}

func preemptionTest(l level) record.SaturationTest {
	preempted, completed := 0.0, 0
	for _, one := range l.cases {
		increase, ok := one.increase(record.SignalPreemptions)
		if !ok {
			return unknown(testPreemptions, "preemptions were not measured")
		}
		preempted += increase
		completed += one.report.Counts.Completed
	}
	return verdict(testPreemptions, preempted > preemptionShare*float64(completed),
		"%s preemptions among %d requests", short(preempted), completed)
}

// queueTest asks whether the queue ever emptied. A queue that stands for the
// whole window means that the server is at its limit: an open loop at this
// rate would have no slack to drain it.
func queueTest(l level) record.SaturationTest {
	waiting, ok := l.Signals[record.SignalWaiting]
	switch {
	case !ok:
		return unknown(testQueue, "waiting requests were not measured")
	case waiting.Min == nil:
		return unknown(testQueue, "the smallest number of waiting requests is not known")
	case waiting.Samples < minScrapes:
		return unknown(testQueue, fmt.Sprintf("%d samples of waiting requests are too few", waiting.Samples))
	case *waiting.Min > 0:
		return verdict(testQueue, true, "the queue never emptied: at least %s waited at each of %d samples", short(*waiting.Min), waiting.Samples)
	}
	return verdict(testQueue, false, "the queue emptied within %d samples, %s waited on average", waiting.Samples, short(waiting.Mean))
}
