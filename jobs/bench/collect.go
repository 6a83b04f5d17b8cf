package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/knee"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
	"github.com/kubectl-inference/kubectl-inference/jobs/core/stats"
	"github.com/kubectl-inference/kubectl-inference/jobs/openai"
)

// collect takes the observations of a case, writes their records and reports
// progress once a second, until the last request is over.
func (l *loop) collect(ctx context.Context) (*collected, error) {
	r := l.run
	all := &collected{plan: r.plan, c: l.c, counts: emptyCounts(), tally: knee.NewTally(r.plan.SLOs), base: l.start}
	progress := time.NewTicker(time.Second)
	defer progress.Stop()
	// Observations wait here until the window's start is known.
	var early []observation
	watching, done := context.WithCancel(ctx)
	defer done()
	seen := live{server: r.watchServer(watching)}
	var failed error
	for {
		select {
		case o, open := <-l.out:
			if !open {
				all.window = l.steady.window()
				for _, o := range early {
					all.add(o)
				}
				if err := r.records.Flush(); failed == nil && err != nil {
					failed = fmt.Errorf("write request records: %w", err)
				}
				return all, failed
			}
			seen.add(o)
			if err := r.writeLine(requestRecord(o, l.c, r.base)); failed == nil {
				failed = err
			}
			start, known := l.steady.start()
			if !known {
				early = append(early, o)
				continue
			}
			_, end := l.bounds()
			all.window = window{start: start, end: end}
			for _, o := range early {
				all.add(o)
			}
			early = nil
			all.add(o)
			l.stopEarly(all)
		case <-progress.C:
			l.progress(&seen)
		}
	}
}

// collected is what the requests of a case add up to. Every event of a request
// belongs to the window in which it happened.
type collected struct {
	plan   record.BenchPlan
	c      record.BenchCase
	window window

	counts                                                   record.CaseCounts
	ttft, ttftEff, ttfot, tpot, icl, itl, e2e, e2eEff, stall stats.Sample
	slip                                                     stats.Sample
	good                                                     int
	tally                                                    *knee.Tally
	base                                                     time.Time // the zero of the tally's times
	outputTokens, promptTokens, bytes, chunks                float64
	flow                                                     float64 // requests by the share of their time in the window
	buffered                                                 int
	dueSent, heldBack                                        int       // of an open loop, by the time at which they were due
	ends                                                     []float64 // seconds into the window, of Completed
	departed                                                 float64   // seconds in the system, summed over all that left in the window
}

func emptyCounts() record.CaseCounts {
	return record.CaseCounts{Errors: map[record.ErrorClass]int{}, ErrorSamples: map[record.ErrorClass]string{}}
}

func (a *collected) add(o observation) {
	reply := o.reply
	tokens, estimated := outputTokens(o)
	a.start(o, tokens)
	a.tokens(o, tokens)
	end := reply.End()
	if life := end.Sub(reply.Sent).Seconds(); reply.Class == "" && life > 0 {
		a.flow += overlap(reply.Sent, end, a.window.start, a.window.end) / life
	}
	if !a.window.holds(end) {
		return
	}
	a.departed += end.Sub(reply.Sent).Seconds()
	a.bytes += float64(reply.Bytes)
	if reply.Class != "" {
		return
	}
	a.counts.Completed++
	a.ends = append(a.ends, end.Sub(a.window.start).Seconds())
	if estimated {
		a.counts.TokensEstimated++
	}
	if reply.PromptTokens >= 0 && reply.PromptTokens != o.prompt {
		a.counts.PromptMismatch++
	}
	if slices.Contains(reply.Flags, openai.FlagBuffered) {
		a.buffered++
	}
	a.e2e.Add(end.Sub(reply.Sent).Seconds())
	a.e2eEff.Add(end.Sub(o.due).Seconds())
	if tpot, ok := reply.TPOT(tokens); ok {
		a.tpot.Add(tpot.Seconds())
	}
	if len(reply.Gaps) > 0 {
		a.stall.Add(slices.Max(reply.Gaps).Seconds())
	}
}

// start counts a request by the moment it was sent.
func (a *collected) start(o observation, tokens int) {
	reply := o.reply
	if o.turn == 0 && a.window.holds(o.due) {
		a.dueSent++
		if o.heldBack {
			a.heldBack++
		}
	}
	switch {
	case reply.Sent.Before(a.window.start):
		a.counts.WarmupStarted++
		if reply.Class != "" {
			a.counts.WarmupFailed++
			a.sampleError(reply)
		}
	case a.window.holds(reply.Sent):
		a.counts.Started++
		if !o.heldBack {
			a.slip.Add(reply.Sent.Sub(o.due).Seconds())
		}
		ratios := ratios(a.plan.SLOs, reply, tokens)
		a.tally.Add(reply.Sent.Sub(a.base).Seconds(), reply.End().Sub(reply.Sent).Seconds(), ratios)
		if reply.Class != "" {
			a.counts.Failed++
			a.counts.Errors[reply.Class]++
			a.sampleError(reply)
			return
		}
		a.counts.Succeeded++
		if len(ratios) == 0 || slices.Max(ratios) <= 1 {
			a.good++
		}
	}
}

func (a *collected) sampleError(reply *openai.Reply) {
	if _, have := a.counts.ErrorSamples[reply.Class]; !have {
		a.counts.ErrorSamples[reply.Class] = reply.Message
	}
}

// tokens counts tokens and gaps by the moment their chunk came. The tokens of a
// chunk are the server's where it states them, else an equal share of the
// request's.
func (a *collected) tokens(o observation, tokens int) {
	reply := o.reply
	if reply.Chunks == 0 {
		if reply.Class == "" && a.window.holds(reply.End()) {
			a.outputTokens += float64(tokens)
			a.promptTokens += float64(promptOf(o))
		}
		return
	}
	succeeded := reply.Class == ""
	share := float64(tokens) / float64(reply.Chunks)
	each := func(i int) float64 {
		switch {
		case reply.GapTokens == nil:
			return share
		case i == 0:
			return float64(reply.FirstTokens)
		}
		return float64(reply.GapTokens[i-1])
	}
	if a.window.holds(reply.FirstToken) {
		a.outputTokens += each(0)
		a.promptTokens += float64(promptOf(o))
		a.chunks++
		if succeeded {
			a.ttft.Add(reply.FirstToken.Sub(reply.Sent).Seconds())
			a.ttftEff.Add(reply.FirstToken.Sub(o.due).Seconds())
		}
	}
	at := reply.FirstToken
	for i, gap := range reply.Gaps {
		if at = at.Add(gap); !a.window.holds(at) {
			continue
		}
		a.outputTokens += each(i + 1)
		a.chunks++
		if !succeeded {
			continue
		}
		a.icl.Add(gap.Seconds())
		if reply.GapTokens != nil {
			a.itl.AddWeighted(gap.Seconds()/each(i+1), reply.GapTokens[i])
		}
	}
	if succeeded && a.window.holds(reply.FirstOutput) {
		a.ttfot.Add(reply.FirstOutput.Sub(reply.Sent).Seconds())
	}
}

func promptOf(o observation) int {
	if o.reply.PromptTokens >= 0 {
		return o.reply.PromptTokens
	}
	return o.prompt
}

// ratios are a request's latencies as shares of the objectives' limits; nil for
// one that failed. A latency that the request does not have, such as TPOT for one
// token, is 0; TTFT without a stream is not known and over its limit.
func ratios(slos []record.BenchSLO, reply *openai.Reply, tokens int) []float64 {
	if reply.Class != "" {
		return nil
	}
	all := make([]float64, len(slos))
	for i, slo := range slos {
		var seconds float64
		switch slo.Metric {
		case record.MetricTTFT:
			if seconds = math.Inf(1); !reply.FirstToken.IsZero() {
				seconds = reply.FirstToken.Sub(reply.Sent).Seconds()
			}
		case record.MetricTPOT:
			tpot, _ := reply.TPOT(tokens)
			seconds = tpot.Seconds()
		case record.MetricE2E:
			seconds = reply.End().Sub(reply.Sent).Seconds()
		case record.MetricMaxStall:
			if len(reply.Gaps) > 0 {
				seconds = slices.Max(reply.Gaps).Seconds()
			}
		}
		all[i] = seconds / slo.MaxSeconds
	}
	return all
}

// rate is a sum over the window per second; 0 for an empty window.
func (a *collected) rate(sum float64) float64 {
	if seconds := a.window.seconds(); seconds > 0 {
		return sum / seconds
	}
	return 0
}
