package oracle

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"

	"github.com/kubectl-inference/kubectl-inference/plugins/core/hpa"
)

// tally counts states: exact those whose size the HPA, its pods and its events
// determine; informed those that they do together with the controller's lease
// and the knowledge which metrics had a sample of every pod.
// Of the recent rescales, bounded ones are exact from outside, and told ones with
// the events of the workload's controller too. held counts states that a window
// holds, shortened those whose end is known better than "a window from now".
type tally struct {
	states, outside, exact, informed, proposals, exactProposals, informedProposals int
	rescales, bounded, told, held, shortened                                       int
	// steps counts syncs that got to the end; raw and stabilized those in which
	// this size is exact from outside, provenRaw and provenStabilized those in
	// which it is with what the controller's conditions prove.
	steps, raw, stabilized, provenRaw, provenStabilized, provenProposals int
}

func (s tally) report(t *testing.T, version hpa.Version) {
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	t.Logf("controller %s: %d states agree", version, s.states)
	t.Logf("read from outside, %d states: the size is exact in %.1f %%, the proposal of a metric in %.1f %%; with the lease and complete samples in %.1f %% and %.1f %%",
		s.outside, percent(s.exact, s.outside), percent(s.exactProposals, s.proposals), percent(s.informed, s.outside), percent(s.informedProposals, s.proposals))
	t.Logf("of %d syncs that ended, the raw size is exact in %.1f %%, with the conditions in %.1f %%; the stabilized one in %.1f %% and %.1f %%; with the conditions a proposal in %.1f %%",
		s.steps, percent(s.raw, s.steps), percent(s.provenRaw, s.steps), percent(s.stabilized, s.steps), percent(s.provenStabilized, s.steps), percent(s.provenProposals, s.proposals))
	t.Logf("of %d recent rescales, the difference is exact for %.1f %% by reason, range and policies, %.1f %% by the workload's events too",
		s.rescales, percent(s.bounded, s.rescales), percent(s.told, s.rescales))
	t.Logf("of %d states that a window holds, the end is nearer than a window from the sync in %.1f %%", s.held, percent(s.shortened, s.held))
}

// controllerVersion is that of the controller in this program. Test programs do
// not list their modules, but the path of a source file has the version in it.
func controllerVersion(t *testing.T) hpa.Version {
	t.Helper()
	start := reflect.ValueOf(podautoscaler.NewHorizontalController).Pointer()
	file, _ := runtime.FuncForPC(start).FileLine(start)
	_, rest, _ := strings.Cut(file, "k8s.io/kubernetes@")
	version, ok := hpa.ParseVersion(rest)
	if !ok {
		t.Fatalf("no version in %s", file)
	}
	return version
}

// conditions compares a decision with all that the controller wrote.
func conditions(d hpa.Decision, o hpa.Observed, object []hpa.Metric, before situation, size int32) (problems []string) {
	expect := func(what string, want, got any) {
		if want != got {
			problems = append(problems, fmt.Sprintf("%s: the model says %v, the controller %v", what, want, got))
		}
	}
	desired := d.Desired.Low
	expect("exact", true, d.Desired.Exact())
	rescales := desired != before.spec
	refused := rescales && before.noUpdate
	switch {
	case refused:
		expect("size", before.spec, size)
	case rescales && before.rival != nil && d.Input.Version.Minor < 34:
		// Later versions read the scale again and write what they wanted.
		refused = true
		expect("size", *before.rival, size)
	default:
		expect("size", desired, size)
	}
	if d.Path == hpa.ByMetrics && d.Input.Unselectable == "" {
		for i, p := range d.Proposals {
			problems = append(problems, shown(p, object[i])...)
		}
	}
	blocked := d.Blocking == hpa.AllFailed || d.Blocking == hpa.DownBlocked
	able := hpa.SucceededGetScale
	if d.Stabilization != nil {
		able = d.Stabilization.Reason
	}
	if rescales {
		able = hpa.SucceededRescale
		if refused {
			able = "FailedUpdateScale"
		}
	}
	expect("AbleToScale", string(able), o.Able)
	switch d.Path {
	case hpa.Disabled:
		expect("ScalingActive", string(hpa.ScalingDisabled), o.Active)
	case hpa.ByMetrics:
		expect("ScalingActive", string(d.Active), o.Active)
		expect("ScalingActive is true", !blocked, o.ActiveTrue)
		if blocked {
			break
		}
		expect("ScalingLimited", string(d.Limit.Reason), o.Limited)
		expect("ScalingLimited is true", d.Limit.Reason != hpa.DesiredWithinRange, o.LimitedTrue)
		if named := o.Winner(d.Input.Metrics); named != hpa.NoWinner {
			expect("winner", d.Winner, named)
		}
	}
	return problems
}

// shown compares what the model says that the status shows with what it does.
func shown(p hpa.Proposal, written hpa.Metric) []string {
	seen, want := written.Seen, p.Shown
	if p.Reason == hpa.MetricFailed {
		want = hpa.Shown{}
	} else if p.Reason == hpa.NoReplicas {
		// The average of no replicas depends on the machine, up to 1.37.
		return nil
	}
	if diff := cmp.Diff(want, hpa.Shown{Value: seen.Total, Average: seen.Average, Utilization: seen.Utilization}); diff != "" {
		return []string{"the status of " + written.Name + " (-model +controller):\n" + diff}
	}
	return nil
}

// outside checks what a kubectl user can say: from the status with its
// rounding, the pods and the events, and without any memory.
func (tr *trace) outside(object *autoscalingv2.HorizontalPodAutoscaler, before situation, observed hpa.Observed, at time.Time, truth hpa.Decision) (problems []string) {
	if before.strange() {
		// The bounds exclude this, and say so.
		return nil
	}
	in := tr.input(object, before, at)
	sizes := []hpa.SizeEvent{}
	for _, event := range tr.world.events {
		kept := at.Sub(event.LastTimestamp.Time) < time.Hour
		if n, reason, ok := hpa.ParseRescale(event.Message); ok && kept && event.Reason == "SuccessfulRescale" {
			sizes = append(sizes, hpa.SizeEvent{Time: event.LastTimestamp.Time, Count: event.Count, Size: n, Reason: reason})
		}
	}
	in.Slack = time.Second
	in.Rescales = in.KnownRescales(sizes, observed)
	tr.sum.outside++
	decision := hpa.Decide(in)
	problems = contains(decision, truth)
	check := hpa.Compare(decision, observed)
	problems = append(problems, tr.proven(check, decision, observed, truth)...)
	problems = append(problems, tr.unsure(in, before, observed, truth)...)
	if decision.Desired.Exact() {
		tr.sum.exact++
	}
	problems = append(problems, tr.remembers(in, sizes, observed, truth)...)
	in.MemorySince = &tr.since
	in.Rescales = in.KnownRescales(hpa.SizesBefore(sizes, tr.world.steps), observed)
	in.Metrics = slices.Clone(in.Metrics)
	for i := range in.Metrics {
		groups := truth.Proposals[i].Groups
		in.Metrics[i].Seen.Complete = groups != nil && groups.Missing == hpa.Exactly(0)
	}
	complete := hpa.Decide(in)
	problems = append(problems, contains(complete, truth)...)
	if complete.Desired.Exact() {
		tr.sum.informed++
	}
	for i, p := range decision.Proposals {
		if truth.Path != hpa.ByMetrics || p.Reason == hpa.MetricFailed {
			continue
		}
		tr.sum.proposals++
		if p.Count.Exact() {
			tr.sum.exactProposals++
		}
		if check.Proposals[i].Exact() {
			tr.sum.provenProposals++
		}
		if complete.Proposals[i].Count.Exact() {
			tr.sum.informedProposals++
		}
	}
	return problems
}

// reread is an object as a client reads it: some quantities are not the same
// after that.
func reread(t *testing.T, object *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var read autoscalingv2.HorizontalPodAutoscaler
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

// strange says whether there is a sample of a pod that is gone.
func (s situation) strange() bool {
	for _, samples := range s.samples {
		for name := range samples {
			if !slices.ContainsFunc(s.pods, func(p corev1.Pod) bool { return p.Name == name }) {
				return true
			}
		}
	}
	return false
}

// contains checks that every step is within its bounds.
func contains(bounds, truth hpa.Decision) (problems []string) {
	defer func() {
		if len(problems) > 0 {
			problems = append(problems, "outside:\n"+proposals(bounds))
		}
	}()
	expect := func(what string, r hpa.Range, n int32) {
		if !r.Contains(n) {
			problems = append(problems, fmt.Sprintf("from outside the %s is %v, not %d", what, r, n))
		}
	}
	expect("size", bounds.Desired, truth.Desired.Low)
	if truth.Path != hpa.ByMetrics || truth.Stabilization == nil || bounds.Stabilization == nil {
		return problems
	}
	expect("raw size", bounds.Raw, truth.Raw.Low)
	expect("stabilized size", bounds.Stabilization.Count, truth.Stabilization.Count.Low)
	for i, p := range bounds.Proposals {
		if want := truth.Proposals[i]; want.Reason != hpa.MetricFailed && p.Reason != hpa.MetricFailed {
			n := want.Count.Low
			if p.Count.Low >= 0 {
				// A negative one counts as none.
				n = max(0, n)
			}
			expect("proposal of "+want.Metric.Name+" ("+string(p.Reason)+")", p.Count, n)
		}
	}
	return problems
}

// steps tells a decision in a few lines.
func steps(d hpa.Decision, observed hpa.Observed, before situation) string {
	var text strings.Builder
	in := d.Input
	fmt.Fprintf(&text, "replicas %+v of %d to %d, %d pods, flags %+v\nbehavior %+v\n", in.Replicas, in.Min, in.Max, len(in.Pods), in.Flags, in.Behavior)
	text.WriteString(proposals(d))
	if in.History != nil {
		fmt.Fprintf(&text, "remembers %+v\n", in.History.Recommendations)
	}
	fmt.Fprintf(&text, "rescales %+v\n%s, raw %v, blocking %s\nstabilization %+v\nlimit %+v\ncontroller %+v\n",
		in.Rescales, d.Path, d.Raw, d.Blocking, d.Stabilization, d.Limit, observed)
	fmt.Fprintf(&text, "refused: read %v write %v, selector %q\n", before.noScale, before.noUpdate, before.selector)
	return text.String()
}

func proposals(d hpa.Decision) string {
	var text strings.Builder
	for _, p := range d.Proposals {
		fmt.Fprintf(&text, "metric %s %s%s %s %d: %v %s %s, ratio %v, pods %+v\n", p.Metric.Type, p.Metric.Name, p.Metric.Container,
			p.Metric.Target, p.Metric.TargetMilli, p.Count, p.Reason, p.Detail, p.Ratio, p.Groups)
		if p.Metric.Seen.Utilization != nil {
			fmt.Fprintf(&text, "  shown %d %%\n", *p.Metric.Seen.Utilization)
		}
		if p.Metric.Seen.Average != nil {
			fmt.Fprintf(&text, "  shown %d m\n", *p.Metric.Seen.Average)
		}
		if p.Filled != nil {
			fmt.Fprintf(&text, "  filled to %v\n", *p.Filled)
		}
	}
	return text.String()
}
