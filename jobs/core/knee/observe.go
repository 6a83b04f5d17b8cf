package knee

import (
	"fmt"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

// Observe takes in what the last step showed, and returns what follows.
func (s *Search) Observe(p Point) record.KneeDecision {
	s.spent += p.Seconds
	d := record.KneeDecision{
		Case: p.Case, Why: s.next.Why, Concurrency: p.Concurrency, Rate: p.Rate,
		Throughput: p.Throughput, Requests: p.Started, Seconds: p.Seconds, Verdict: record.KneeUndecided,
	}
	switch {
	case p.Broken != "":
		s.broken, d.Shown = p.Broken, p.Broken
	case p.Concurrency > 0:
		s.observeClosed(p, &d)
	default:
		s.observeOpen(p, &d)
	}
	if s.known != nil {
		low, _, high := s.interval()
		d.Low, d.High = &low, &high
	}
	s.decisions = append(s.decisions, d)
	return d
}

func (s *Search) observeClosed(p Point, d *record.KneeDecision) {
	var binding string
	d.Verdict, d.Sure, binding = Judge(p.Misses, s.o.Confidence, true)
	s.closed = append(s.closed, p)
	d.Shown = fmt.Sprintf("%.3g req/s, mean latency %.3gs", p.Throughput, p.Latency)
	switch {
	case s.saturated():
		s.closedEnd = fmt.Sprintf("%d in flight gave little more than %d", p.Concurrency, s.closed[len(s.closed)-2].Concurrency)
	case d.Verdict == record.KneeFails && d.Sure:
		s.missed = true
		s.closedEnd = fmt.Sprintf("%s is missed at %d in flight", binding, p.Concurrency)
	default:
		return
	}
	d.Shown += ": " + s.closedEnd
}

func (s *Search) observeOpen(p Point, d *record.KneeDecision) {
	d.Verdict, d.Sure, _ = Judge(p.Misses, s.o.Confidence, true)
	s.tried = append(s.tried, p)
	for i, one := range p.Misses {
		s.known[i].add(p.Rate, one.Of, one.Missed, one.Effect)
	}
	d.Shown = fmt.Sprintf("%d requests", p.Started)
	for _, one := range p.Misses {
		d.Shown += fmt.Sprintf(", %.3g %% missed %s", 100*float64(one.Missed)/float64(max(one.Of, 1)), one.Objective)
	}
}

// Result is the answer so far.
func (s *Search) Result() record.KneeResult {
	r := record.KneeResult{Confidence: s.o.Confidence, Saturation: s.saturation(), Seconds: s.spent, Decisions: s.decisions}
	ended := ""
	if s.closedEnd != "" {
		_, ended = s.nextOpen()
	}
	r.Ended = ended
	switch {
	case s.broken != "":
		r.Ended, r.Message = record.KneeBroken, "the search ended: "+s.broken
	case ended == "":
		r.Ended, r.Message = record.KneeStopped, "the search was stopped"
	}
	if len(s.tried) == 0 {
		if r.Message == "" {
			r.Message = "no rate was tried: raise the budget"
		}
		return r
	}
	low, rate, high := s.interval()
	r.Binding = s.binding(rate)
	if ended == record.KneeNothing {
		r.Message = fmt.Sprintf("no rate was found at which the objectives hold: %s is missed at low load too", r.Binding)
		return r
	}
	r.Rate, r.Low, r.High = &rate, &low, &high
	text := fmt.Sprintf("the objectives hold up to %.3g req/s (%.3g to %.3g at %.0f %%); the limit is %s", rate, low, high, 100*s.o.Confidence, r.Binding)
	switch {
	case ended == record.KneeBudget:
		text += "; the budget ended the search before its precision"
	case r.Message != "":
		text += "; " + r.Message
	}
	r.Message = text
	return r
}

// binding is the objective that is met up to the lowest rate; or saturation,
// where no objective is the limit.
func (s *Search) binding(rate float64) string {
	name, lowest := "", 0.0
	for i, one := range s.known {
		if middle := one.quantile(one.weights, 0.5); name == "" || middle < lowest {
			name, lowest = s.o.SLOs[i].String(), middle
		}
	}
	if s.saturated() && rate > 0.98*s.saturation() {
		return "saturation"
	}
	return name
}
